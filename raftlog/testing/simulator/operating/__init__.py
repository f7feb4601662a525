# SPDX-License-Identifier: Apache-2.0
"""Who changes the voters of a simulated quorum: an operator, and autopilots."""
