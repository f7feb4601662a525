# SPDX-License-Identifier: Apache-2.0
"""The driver of the consensus core: it carries out effects on a log, a store of election states, and a network."""
