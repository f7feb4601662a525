# SPDX-License-Identifier: Apache-2.0
"""State machines of simulated replicas: the built-in one, those of users, and what is checked of their calls."""
