# SPDX-License-Identifier: Apache-2.0
"""Makes the rows and columns of the data source; imports nothing of Spark."""
