/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_progress.h"

#include "check.h"

static struct log_find loss(struct log_progress *p, const char *line)
{
    const char *at = strstr(line, "loss");
    return log_progress_loss(p, line, strlen(line), (size_t)(at - line));
}

static void a_loss_is_a_step(void)
{
    struct log_progress p = { 0 };
    CHECK(!loss(&p, "step 3 loss: 0.25").score && p.steps == 1 && p.loss_fine);
    CHECK(!loss(&p, "{'eval_loss': 'nan'}").score && p.steps == 1);
    CHECK(loss(&p, "{'train_loss': nan}").issue == ISSUE_NAN && !p.loss_fine);
}

static void zero_again_and_again_is_a_failure(void)
{
    struct log_progress p = { 0 };
    CHECK(!loss(&p, "steps: 1%| 1/90 [00:01, avr_loss=0]").score);
    CHECK(loss(&p, "steps: 2%| 2/90 [00:02, avr_loss=0]").issue == ISSUE_NAN);
    CHECK(!loss(&p, "steps: 3%| 3/90 [00:03, avr_loss=0.07]").score && p.loss_fine);
    CHECK(!loss(&p, "steps: 4%| 4/90 [00:04, avr_loss=0.000]").score);
    CHECK(loss(&p, "steps: 5%| 5/90 [00:05, avr_loss=0.000]").score > 0);
}

static void a_loss_that_shrinks_may_end_at_zero(void)
{
    struct log_progress p = { 0 };
    CHECK(!loss(&p, "loss: 0.210000").score && !loss(&p, "loss: 0.004100").score);
    CHECK(!loss(&p, "loss: 0.000000").score && !loss(&p, "loss: 0.000000").score);
    CHECK(!loss(&p, "loss: 8.1e-05").score && !loss(&p, "loss: 0.0").score && !loss(&p, "loss: 0.0").score);
}

static void a_part_of_the_loss_may_be_zero(void)
{
    struct log_progress p = { 0 };
    CHECK(!loss(&p, "step 8 loss=1.5").score);
    for (int i = 0; i < 4; i++)
        CHECK(!loss(&p, "step 8 aux_loss=0.0").score && !loss(&p, "step 8 prior_loss=0").score);
    CHECK(p.loss_fine);
}

static void bars_count_behind_their_first_step(void)
{
    static const char fresh[] = "  0%|          | 0/21 [00:00<?, ?it/s]",
                      later[] = " 9%|#  | 2/21 [00:02, 1.0it/s]";
    struct log_progress p = { 0 };
    log_progress_bar(&p, fresh, strlen(fresh), strlen(fresh) - strlen("it/s]"));
    CHECK(p.steps == 0);
    log_progress_bar(&p, later, strlen(later), strlen(later) - strlen("it/s]"));
    CHECK(p.steps == 1);
}

int main(void)
{
    RUN(a_loss_is_a_step);
    RUN(zero_again_and_again_is_a_failure);
    RUN(a_loss_that_shrinks_may_end_at_zero);
    RUN(a_part_of_the_loss_may_be_zero);
    RUN(bars_count_behind_their_first_step);
    return check_done();
}
