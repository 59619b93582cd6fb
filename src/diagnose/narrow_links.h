/* Links with fewer lanes than the card has, by what lspci and the kernel say of them. */
#ifndef TV_NARROW_LINKS_H
#define TV_NARROW_LINKS_H

#include "diagnose.h"

/* For the rule of narrow links, where no table of nvidia-smi tells it. */
void tv_narrow_links(tv_inquiry *q, const tv_rule *rule);

#endif
