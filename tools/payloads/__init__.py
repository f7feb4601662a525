# SPDX-License-Identifier: Apache-2.0
"""What keys and values of records mean, in the words of each Kafka release."""
