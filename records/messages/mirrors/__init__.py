# SPDX-License-Identifier: Apache-2.0
"""Records of MirrorMaker 2's topics, and of the topics in which its Connect workers keep offsets and configurations."""
