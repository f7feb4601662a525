# SPDX-License-Identifier: Apache-2.0
"""The classes that Spark calls for the data source, planning on the driver, and streams."""
