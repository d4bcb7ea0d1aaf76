/* SPDX-License-Identifier: Apache-2.0
 * The handlers of the routes; route.c has their table. */
#ifndef CAIRN_WEB_API_H
#define CAIRN_WEB_API_H

#include "web/request.h"

void api_index(struct request *r);
void api_asset(struct request *r);
void api_login(struct request *r);

void api_session(struct request *r);
void api_logout(struct request *r);
void api_link(struct request *r);
void api_events(struct request *r);
void api_openapi(struct request *r);

void api_machine(struct request *r);
void api_machine_history(struct request *r);
void api_doctor(struct request *r);

void api_jobs_list(struct request *r);
void api_jobs_add(struct request *r);
void api_job_get(struct request *r);
void api_job_patch(struct request *r);
void api_job_delete(struct request *r);
void api_job_act(struct request *r);
void api_job_series(struct request *r);
void api_job_log(struct request *r);
void api_job_samples(struct request *r);
void api_job_files(struct request *r);
void api_job_verdict(struct request *r);
void api_queue_put(struct request *r);
void api_config(struct request *r);

void api_settings_get(struct request *r);
void api_settings_put(struct request *r);

void api_file_get(struct request *r);
void api_file_put(struct request *r);
void api_file_delete(struct request *r);
extern const struct body_sink upload_sink; /* of api_file_put */

void api_check(struct request *r);
void api_plan(struct request *r);
void api_env(struct request *r);
void api_diagnose(struct request *r);
void api_tensor_check(struct request *r);

#endif
