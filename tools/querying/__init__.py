# SPDX-License-Identifier: Apache-2.0
"""The verb ``query``: SQL over the files of logs, by DuckDB, which asks for the columns and rows that a query needs."""
