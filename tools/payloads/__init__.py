# SPDX-License-Identifier: Apache-2.0
"""Decodes keys and values of records, and formats them like each Kafka release."""
