# SPDX-License-Identifier: Apache-2.0
"""Contract suites: tests that any implementation of a log or a file system must pass, to run on yours."""
