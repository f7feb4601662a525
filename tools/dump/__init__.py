# SPDX-License-Identifier: Apache-2.0
"""The verbs dump-log and explain: files as text, in each output format."""
