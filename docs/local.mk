# SPDX-License-Identifier: MIT
dist_doc_DATA += docs/DESIGN.md docs/FORMAT.md docs/HACKING.md
