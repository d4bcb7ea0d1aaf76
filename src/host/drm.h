/* SPDX-License-Identifier: Apache-2.0
 * AMD display devices as DRM and PCI see them: /sys/class/drm and /sys/bus/pci/devices.
 *
 * A card has up to two DRM names (card0 and renderD128) that lead to one PCI device; here it is one struct.
 * Card numbers say nothing about KFD's order. */
#ifndef CAIRN_HOST_DRM_H
#define CAIRN_HOST_DRM_H

#include "host/facts.h"

struct drm_device {
    const char *dir;  /* "/sys/class/drm/card1/device" */
    int render_minor; /* -1: no such name seen */
    struct text pci;  /* "0000:03:00.0" */
    struct text driver;
    struct num vendor_id, device_id, revision;
    struct num pci_class, subsystem; /* as in struct gpu_facts */
    struct text gfx;                 /* from the graphics block in ip_discovery */
    bool taken;                      /* for the join with KFD */
};

void drm_read(const struct root *r, struct arena *a, struct drm_device **out, size_t *n, struct problems *p);

/* Memory sizes, firmware, link; then, unless the device sleeps, load, temperature, power, clocks. */
void drm_read_details(const struct root *r, struct arena *a, const struct drm_device *d, bool still_only,
                      struct gpu_facts *g);

/* Is there a display controller of NVIDIA on the PCI bus? */
bool drm_has_nvidia(const struct root *r, struct arena *a);

/* A signed number from a one-line file; unknown if the file does not exist, a problem if it is not a number.
 * */
struct num drm_read_num(const struct root *r, struct arena *a, const char *path, struct problems *p);

#endif
