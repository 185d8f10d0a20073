/* Where worker processes run: launcher plugins. Part of assay/plugin_abi.h, whose rules hold. */
#ifndef ASSAY_ABI_LAUNCHER_H
#define ASSAY_ABI_LAUNCHER_H

#include "assay/abi/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Since 1.4. A launcher has worker processes run somewhere: on this machine, on nodes of a cluster. Workers report
 * through files below a folder that both sides see, so a launcher moves no results. */

typedef struct assay_launcher_config {
  uint32_t size;
  uint32_t reserved;
  assay_str options; /* JSON object, see the launcher's options_schema */
  assay_str folder;  /* absolute path, exists: for scripts and logs of the launcher; seen by every node */
  assay_str run;     /* id of the run; unique, fit for a job's name */
} assay_launcher_config;

typedef struct assay_task { /* one worker process */
  const assay_str* argv;    /* (argc) argv[0] is an absolute path */
  size_t argc;
  assay_str log; /* absolute path: stdout and stderr are appended to it */
} assay_task;

typedef struct assay_job { /* tasks that differ in nothing but what they are told: one array job */
  uint32_t size;
  uint32_t devices; /* that each task needs; 0: none */
  assay_str name;
  const assay_task* tasks; /* (task_count) */
  size_t task_count;
  const assay_str* environment; /* (environment_count) "NAME=value": set for the tasks over what a node gives */
  size_t environment_count;
  double seconds;        /* time limit of a task; 0: none */
  uint64_t memory;       /* bytes a task may need; 0: not said */
  uint32_t cpus;         /* processors a task may use; 0: not said */
  uint32_t most_at_once; /* tasks running at one time; 0: no limit */
} assay_job;

typedef enum assay_task_phase {
  ASSAY_TASK_WAITING = 1,
  ASSAY_TASK_RUNNING = 2,
  ASSAY_TASK_EXITED = 3, /* the process ended by itself: exit_code or signal tell how */
  ASSAY_TASK_LOST = 4    /* the node failed, a limit was reached, somebody cancelled it: `reason` tells */
} assay_task_phase;

typedef struct assay_task_state { /* never grows: `poll` fills an array; strings live until the next call */
  uint32_t size;
  uint32_t phase; /* assay_task_phase */
  int32_t exit_code;
  int32_t signal;   /* 0: none */
  int32_t restarts; /* how often the launcher's system began it anew by itself */
  int32_t again;    /* LOST: 1 where another start may well end better (the node failed), 0 where it was meant */
  assay_str where;  /* name of the node; empty: not known */
  assay_str reason; /* one line; empty: nothing to say */
} assay_task_state;

typedef struct assay_launcher_table {
  uint32_t size;
  uint32_t reserved;
  int32_t (*open)(const assay_launcher_config* config, void** launcher, assay_error* error);
  /* Everything in `job` is copied. ASSAY_INFRA where the system refuses the job, with its own words; ASSAY_EXHAUSTED
   * where it cannot take it just now (it does not answer, too many jobs): the caller asks again later. A job of which a
   * part is taken is there; its other tasks are WAITING, and `poll` sees to them. */
  int32_t (*start)(void* launcher, const assay_job* job, uint64_t* id, assay_error* error);
  /* Does not wait. Writes one state for each task of the job. ASSAY_INFRA where the system cannot be asked just now;
   * ASSAY_EXHAUSTED where all tasks that it has taken were told to be over, and it cannot take the others just now. */
  int32_t (*poll)(void* launcher, uint64_t id, assay_task_state* states, size_t count, assay_error* error);
  /* Ends one task, or all of the job's (task < 0), and nothing else; waiting ones never start. */
  int32_t (*cancel)(void* launcher, uint64_t id, int64_t task, assay_error* error);
  /* Cancels what is left. */
  void (*close)(void* launcher);
} assay_launcher_table;

#ifdef __cplusplus
}
#endif

#endif /* ASSAY_ABI_LAUNCHER_H */
