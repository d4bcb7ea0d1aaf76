/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "rules/remedy.h"

static const char *missing_remedy(const struct check_ctx *l)
{
    return l->facts->host.container.s ? remedy_container(l)
                                      : "sudo modprobe amdgpu && ls -l /dev/kfd /dev/dri";
}

struct finding check_kfd_access(const struct check_ctx *l)
{
    const struct dev_node *d = &l->facts->host.kfd_node;
    if (!l->facts->n_gpus || l->facts->host.wsl || ctx_gfx_given(l))
        return found_skip("no GPU that KFD supports");
    switch (d->access) {
    case NODE_OPEN:
    case NODE_OPEN_BY_ACL:
        return found_ok(l, "/dev/kfd: this user can open it");
    case NODE_MISSING:
        return found(CHECK_FAIL, "/dev/kfd does not exist",
                     l->facts->host.container.s ? "the container was started without the device"
                                                : "KFD is not loaded, or does not support the GPU",
                     missing_remedy(l));
    case NODE_DENIED:
        return found(CHECK_FAIL,
                     ctx_text(l, "/dev/kfd: permission denied for this user (group %s, mode %04o)",
                              d->group ? d->group : "unknown", d->mode),
                     "ROCm opens it first; without it ROCm finds no GPU", remedy_node_access(l, d));
    case NODE_UNKNOWN:
        break;
    }
    return found_unknown("/dev/kfd: unknown whether this user can open it",
                         "a captured tree does not show it", NULL);
}

/* One node that returns EACCES makes the runtime give up on all GPUs (libhsakmt, topology.c). */
struct finding check_render_access(const struct check_ctx *l)
{
    size_t seen = 0, open = 0;
    for (size_t i = 0; i < l->facts->n_gpus; i++) {
        const struct gpu_facts *g = &l->facts->gpus[i];
        if (!g->rocm_capable || !g->render_node.s)
            continue;
        seen++;
        open += g->render.access == NODE_OPEN || g->render.access == NODE_OPEN_BY_ACL;
        if (g->render.access == NODE_DENIED)
            return found(CHECK_FAIL,
                         ctx_text(l, "%s: permission denied for this user (group %s)", g->render_node.s,
                                  g->render.group ? g->render.group : "unknown"),
                         "the runtime opens every GPU's render node; one denied node hides all GPUs",
                         remedy_node_access(l, &g->render));
        if (g->render.access == NODE_MISSING)
            return found(g == l->gpu ? CHECK_FAIL : CHECK_WARN,
                         ctx_text(l, "%s does not exist", g->render_node.s),
                         "the runtime skips a GPU without a render node", missing_remedy(l));
    }
    if (!ctx_capable(l))
        return found_skip("no GPU that KFD has");
    if (open < seen || !seen)
        return found_unknown("render nodes: unknown whether this user can open them",
                             seen ? "a captured tree does not show it" : "KFD names no render node", NULL);
    return found_ok(l, "render nodes: this user can open all of them");
}

struct finding check_seat_acl(const struct check_ctx *l)
{
    const struct dev_node *node = NULL;
    for (size_t i = 0; i < l->facts->n_gpus && !node; i++)
        if (l->facts->gpus[i].render.access == NODE_OPEN_BY_ACL)
            node = &l->facts->gpus[i].render;
    if (l->facts->host.kfd_node.access == NODE_OPEN_BY_ACL)
        node = &l->facts->host.kfd_node;
    if (!node)
        return l->facts->host.kfd_node.access == NODE_OPEN
                   ? found_ok(l, "access does not depend on a desktop login")
                   : found_skip("this user cannot open the devices anyway");
    return found(CHECK_WARN, ctx_text(l, "%s: this user has access only through a desktop login", node->path),
                 "a seat ACL grants the access: the same job fails over ssh, in cron and in a service",
                 remedy_node_access(l, node));
}

struct finding check_container(const struct check_ctx *l)
{
    const struct host_facts *h = &l->facts->host;
    if (!h->container.s)
        return found_skip("not in a container");
    if (h->kfd_masked)
        return found(
            CHECK_WARN, ctx_text(l, "this %s container hides some GPUs of the host", h->container.s),
            "KFD answers \"not permitted\" for GPUs whose device was not passed in, although sysfs shows the "
            "cards",
            remedy_container(l));
    const struct dev_node *render = l->gpu ? &l->gpu->render : NULL;
    if (render && render->access == NODE_DENIED && render->gid >= 0 && !render->group)
        return found(CHECK_WARN,
                     ctx_text(l, "group %lld of %s has no name in this container", (long long)render->gid,
                              render->path),
                     "the host's render group has another gid here: pass the numeric gid, not the name",
                     remedy_container(l));
    return found_ok(l, "%s container; no GPU is masked", h->container.s);
}
