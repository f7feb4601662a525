# SPDX-License-Identifier: Apache-2.0
"""How a process of a simulated quorum must behave: what it answers and asks, how it leads, waits and rests."""
