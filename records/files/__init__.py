# SPDX-License-Identifier: Apache-2.0
"""The small files beside a log, and the names of all files, as values."""
