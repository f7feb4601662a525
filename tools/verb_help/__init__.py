# SPDX-License-Identifier: Apache-2.0
"""What the command says about itself: its verbs, their help, and completion for shells."""
