# SPDX-License-Identifier: Apache-2.0
"""The inputs of the consensus core that come from the application."""
