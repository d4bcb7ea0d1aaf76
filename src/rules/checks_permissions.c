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
    if (!l->facts->n_gpus || l->facts->host.wsl || ctx_told(l))
        return found_skip("no GPU that KFD could have");
    switch (d->access) {
    case NODE_OPEN:
    case NODE_OPEN_BY_ACL:
        return found_ok(l, "/dev/kfd opens for this user");
    case NODE_MISSING:
        return found(CHECK_FAIL, "/dev/kfd is not there",
                     l->facts->host.container.s ? "the container was started without the device"
                                                : "KFD is not loaded, or the GPU is not one it knows",
                     missing_remedy(l));
    case NODE_DENIED:
        return found(CHECK_FAIL,
                     ctx_text(l, "/dev/kfd does not open for this user (group %s, mode %04o)",
                              d->group ? d->group : "unknown", d->mode),
                     "ROCm opens it before anything else; without it there are no GPUs",
                     remedy_node_access(l, d));
    case NODE_UNKNOWN:
        break;
    }
    return found_unknown("whether /dev/kfd opens is not known", "a captured tree does not tell", NULL);
}

/* One node that answers EACCES makes the runtime give up on all GPUs (libhsakmt, topology.c). */
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
            return found(
                CHECK_FAIL,
                ctx_text(l, "%s does not open for this user (group %s)", g->render_node.s,
                         g->render.group ? g->render.group : "unknown"),
                "the runtime opens every GPU's render node, and one that is forbidden hides all GPUs",
                remedy_node_access(l, &g->render));
        if (g->render.access == NODE_MISSING)
            return found(g == l->gpu ? CHECK_FAIL : CHECK_WARN,
                         ctx_text(l, "%s is not there", g->render_node.s),
                         "a GPU without its render node is left out by the runtime", missing_remedy(l));
    }
    if (!ctx_capable(l))
        return found_skip("no GPU that KFD has");
    if (open < seen || !seen)
        return found_unknown("whether the render nodes open is not known",
                             seen ? "a captured tree does not tell" : "KFD names no render node", NULL);
    return found_ok(l, "every render node opens for this user");
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
                   : found_skip("the devices do not open anyway");
    return found(CHECK_WARN, ctx_text(l, "%s opens only because this user sits at the desktop", node->path),
                 "an ACL of the seat allows it: the same job fails over ssh, in cron and in a service",
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
            "KFD answers \"not permitted\" for GPUs whose device was not passed in, though sysfs shows the "
            "cards",
            remedy_container(l));
    const struct dev_node *render = l->gpu ? &l->gpu->render : NULL;
    if (render && render->access == NODE_DENIED && render->gid >= 0 && !render->group)
        return found(CHECK_WARN,
                     ctx_text(l, "group %lld of %s has no name in this container", (long long)render->gid,
                              render->path),
                     "the host's render group has another number here: pass the number, not the name",
                     remedy_container(l));
    return found_ok(l, "%s container; no GPU is masked", h->container.s);
}
