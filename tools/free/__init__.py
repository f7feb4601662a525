# SPDX-License-Identifier: Apache-2.0
"""The verb ``free``: what could be removed on a full disk."""
