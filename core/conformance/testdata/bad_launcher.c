/* A launcher of processes of this machine that does one thing that it must not do. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assay/plugin_abi.h"
#include "bad.h"

enum { MOST_JOBS = 16, MOST_TASKS = 8, MOST_WORDS = 8 };

struct task {
  char* argv[MOST_WORDS + 1];
  char* log;
  uint32_t phase;
  pid_t pid;
  int status;
};

struct job {
  struct task tasks[MOST_TASKS];
  size_t count;
  char* environment[MOST_WORDS];
  size_t variables;
  size_t most;
};

struct launcher {
  struct job jobs[MOST_JOBS];
  size_t count;
};

static int32_t fail(assay_error* error, int32_t code, const char* message) {
  error->code = code;
  snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

static char* copy(assay_str text) { return strndup(text.data, text.size); }

static int32_t open_launcher(const assay_launcher_config* config, void** handle, assay_error* error) {
  if (config->options.size != 2 || memcmp(config->options.data, "{}", 2) != 0)
    return fail(error, ASSAY_INVALID, "no options are known");
  *handle = calloc(1, sizeof(struct launcher));
  return ASSAY_OK;
}

static void begin(struct task* task, const struct job* job) {
  task->phase = ASSAY_TASK_RUNNING;
  task->pid = fork();
  if (task->pid != 0) {
    setpgid(task->pid, task->pid);
    return;
  }
  setpgid(0, 0);
  for (size_t i = 0; i < job->variables; ++i) putenv(job->environment[i]);
  const int log = open(BAD == NO_LOG ? "/dev/null" : task->log, O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(log, 1);
  dup2(log, 2);
  execv(task->argv[0], task->argv);
  _exit(127);
}

static void look(struct job* job) {
  size_t running = 0;
  for (size_t i = 0; i < job->count; ++i) {
    struct task* task = &job->tasks[i];
    if (task->phase == ASSAY_TASK_RUNNING && waitpid(task->pid, &task->status, WNOHANG) == task->pid)
      task->phase = ASSAY_TASK_EXITED;
    running += task->phase == ASSAY_TASK_RUNNING ? 1 : 0;
  }
  for (size_t i = 0; i < job->count; ++i) {
    const int room = job->most == 0 || running < job->most || BAD == IGNORES_MOST_AT_ONCE;
    if (job->tasks[i].phase != ASSAY_TASK_WAITING || !room) continue;
    begin(&job->tasks[i], job);
    ++running;
  }
}

static int32_t start(void* handle, const assay_job* asked, uint64_t* id, assay_error* error) {
  struct launcher* launcher = handle;
  if (asked->task_count == 0 || asked->task_count > MOST_TASKS || launcher->count == MOST_JOBS) {
    return fail(error, ASSAY_INVALID, "a number of tasks that is not served");
  }
  struct job* job = &launcher->jobs[launcher->count];
  job->count = asked->task_count;
  job->most = asked->most_at_once;
  for (size_t i = 0; i < asked->environment_count; ++i)
    job->environment[job->variables++] = copy(asked->environment[i]);
  for (size_t i = 0; i < asked->task_count; ++i) {
    job->tasks[i].phase = ASSAY_TASK_WAITING;
    job->tasks[i].log = copy(asked->tasks[i].log);
    for (size_t word = 0; word < asked->tasks[i].argc; ++word)
      job->tasks[i].argv[word] = copy(asked->tasks[i].argv[word]);
  }
  *id = launcher->count++;
  look(job);
  return ASSAY_OK;
}

static int32_t poll_job(void* handle, uint64_t id, assay_task_state* states, size_t count, assay_error* error) {
  struct launcher* launcher = handle;
  if (BAD == POLL_OF_ANYTHING && id >= launcher->count) return ASSAY_OK;
  if (id >= launcher->count) return fail(error, ASSAY_NOT_FOUND, "no such job");
  struct job* job = &launcher->jobs[id];
  look(job);
  for (size_t i = 0; i < count && i < job->count; ++i) {
    const struct task* task = &job->tasks[i];
    states[i].phase = task->phase;
    states[i].exit_code = WIFEXITED(task->status) && BAD != LOSES_EXIT_CODES ? WEXITSTATUS(task->status) : 0;
    states[i].signal = WIFSIGNALED(task->status) ? WTERMSIG(task->status) : 0;
    if (task->phase == ASSAY_TASK_LOST) states[i].reason = (assay_str){"cancelled", 9};
  }
  return ASSAY_OK;
}

static void end(struct task* task) {
  if (task->phase == ASSAY_TASK_RUNNING) {
    kill(BAD == LEAVES_CHILDREN ? task->pid : -task->pid, SIGKILL);
    waitpid(task->pid, &task->status, 0);
  }
  if (task->phase <= ASSAY_TASK_RUNNING) task->phase = ASSAY_TASK_LOST;
}

static int32_t cancel(void* handle, uint64_t id, int64_t task, assay_error* error) {
  struct launcher* launcher = handle;
  if (id >= launcher->count) return fail(error, ASSAY_NOT_FOUND, "no such job");
  struct job* job = &launcher->jobs[id];
  for (size_t i = 0; i < job->count; ++i) {
    if (task < 0 || (size_t)task == i) end(&job->tasks[i]);
  }
  return ASSAY_OK;
}

static void close_launcher(void* handle) {
  struct launcher* launcher = handle;
  for (size_t i = 0; i < launcher->count && BAD != CLOSE_ENDS_NOTHING; ++i) {
    for (size_t task = 0; task < launcher->jobs[i].count; ++task) end(&launcher->jobs[i].tasks[task]);
  }
  free(launcher);
}

static const assay_launcher_table kTable = {
    sizeof(assay_launcher_table), 0, open_launcher, start, poll_job, cancel, close_launcher};

static const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                                     sizeof(assay_plugin),
                                     ASSAY_ABI_MAJOR,
                                     ASSAY_ABI_MINOR,
                                     ASSAY_LAUNCHER,
                                     0,
                                     0,
                                     NAME,
                                     "1.0.0",
                                     "made to be found out",
                                     "{\"type\": \"object\", \"additionalProperties\": false}",
                                     &kTable};

__attribute__((visibility("default"))) const assay_plugin* assay_plugin_query(uint32_t major, uint32_t minor,
                                                                              const assay_host* host) {
  (void)minor;
  (void)host;
  return major == ASSAY_ABI_MAJOR ? &kPlugin : NULL;
}
