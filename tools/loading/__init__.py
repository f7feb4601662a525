# SPDX-License-Identifier: Apache-2.0
"""Whether Kafka's controllers would load metadata records, by the rules of each release."""
