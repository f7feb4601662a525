# SPDX-License-Identifier: Apache-2.0
"""The verb ``stats``: what logs are made of, and who writes the most."""
