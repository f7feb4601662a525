# SPDX-License-Identifier: Apache-2.0
"""The data source: planning on the driver, streams and partitions."""
