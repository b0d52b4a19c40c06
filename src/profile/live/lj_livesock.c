/*
** Socket of live control: folder, name, clients.
** Context: under the lock | wait: background thread, without the lock | rouse: ordinary threads.
**
** The socket gets its name only when it listens. So a name in the folder that refuses a connection
** is that of a process that has ended, and may be removed.
*/

#define lj_livesock_c
#define LUA_CORE

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* For accept4, O_PATH and struct ucred. */
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "profile/base/lj_nanotime.h"
#include "profile/base/lj_ownfd.h"
#include "profile/live/lj_livesock.h"

#define FOLDER      "/tmp/.luajit-sysprof-%ld" /* With the user; */
#define FOLDER_NEXT ".%d" /* from the second one on, with its number. */
#define FOLDER_ROOT "/run/.luajit-sysprof-%ld" /* Only root can take this one. */
/* Limit of names of the folder of a user in `/tmp`: another user owns it, and others
** have its other names
*/
#define FOLDERS   9
#define NAME_SIZE 32
#define NAMES     9 /* PID, PID.2 and so on. */
/* Limit of clients in the queue: too many clients; try again */
#define BACKLOG    128
#define OPEN_TRIES 20
/* Limit of names of processes that a sweep connects to: (the next sweep) */
#define SWEEP_LIVE 256
/* Limit of names without a process that a sweep removes: (the next sweep) */
#define SWEEP_GONE 8192
/* Limit of names that a sweep looks at: (the next sweep) */
#define SWEEP_NAMES 65536
#define TEMPORARY   '.'  /* First character of a name before the socket listens. */
#define LISTEN_S    60   /* A socket listens so soon after it has the temporary name. */
#define NAME_MS     1000 /* Between two looks whether the name is still there. */
#define PROBLEM_MAX 512
#define FOLDER_MAX  64

static struct {
  OwnFd folder, listens;
  int nfolder;         /* Number of the folder. */
  OwnFd hears, rouses; /* Ends of a pair: a write at one end wakes the other. */
  ino_t ino;           /* Of the name. */
  char name[NAME_SIZE];
  int64_t look_ms; /* When to look whether the name is still there. */
} sock = { .folder = { -1, 0, 0 },
	   .listens = { -1, 0, 0 },
	   .hears = { -1, 0, 0 },
	   .rouses = { -1, 0, 0 } };

static char problem_text[PROBLEM_MAX];

/* Path of the folder with this number, of FOLDERS and one. */
static void folder_path(int n, char *path)
{
  long user = (long)geteuid();
  int len = snprintf(path, FOLDER_MAX, n > FOLDERS ? FOLDER_ROOT : FOLDER, user);
  if (n > 1 && n <= FOLDERS) snprintf(path + len, FOLDER_MAX - (size_t)len, FOLDER_NEXT, n);
}

static const char *problem(const char *what, const char *why)
{
  char path[FOLDER_MAX];
  folder_path(sock.nfolder, path);
  snprintf(problem_text, sizeof(problem_text), "%s %s: %s", what, path, why);
  return problem_text;
}

/* -- Folder ------------------------------------------------------------------ */

/* Open the folder with this number, and create it if it is missing and create is set. Returns NULL or the
** problem. is_taken: another user has its name, so it is not open.
*/
static const char *folder_open(int n, int create, int *is_taken)
{
  char path[FOLDER_MAX];
  const char *why;
  struct stat st;
  int fd;
  sock.nfolder = n;
  folder_path(n, path);
  *is_taken = 0;
  if (create && mkdir(path, 0700) != 0 && errno != EEXIST)
    return problem("mkdir", strerror(errno));
  fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return problem("open", strerror(errno));
  if (fstat(fd, &st) != 0) {
    why = problem("fstat", strerror(errno));
    close(fd);
    return why;
  }
  if (st.st_uid != geteuid()) {
    close(fd);
    *is_taken = 1;
    return NULL;
  }
  if (!S_ISDIR(st.st_mode)) {
    close(fd);
    return problem("the folder", "it is a link or a file; remove it");
  }
  if ((st.st_mode & 077) != 0) {
    close(fd);
    return problem("the folder",
		   "other users may enter it; remove that right by chmod 700");
  }
  return lj_ownfd_take(&sock.folder, fd) ? NULL : problem("fcntl for", strerror(errno));
}

/* Another user may have taken names, and never leave them. */
static const char *folder_find(void)
{
  const char *why;
  int n = 1, is_taken;
  do why = folder_open(n, 1, &is_taken);
  while (is_taken && n++ < FOLDERS);
  if (!is_taken) return why;
  if (geteuid() == 0 && !folder_open(n, 1, &is_taken) && !is_taken) return NULL;
  sock.nfolder = 1;
  return problem("the folder", "another user owns it, and others have its other names; "
			       "remove them as root");
}

/* Address of a name in the folder: by the descriptor, so that it is this folder. */
static void address_of(struct sockaddr_un *sa, const char *name)
{
  memset(sa, 0, sizeof(*sa));
  sa->sun_family = AF_UNIX;
  snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/thread-self/fd/%d/%s", sock.folder.fd,
	   name);
}

/* Who listens under a name. */
typedef enum NameUser {
  NAME_FREE,
  NAME_USED, /* A process, or it is in doubt. */
  NAME_OURS  /* This process. */
} NameUser;

static NameUser name_user(const char *name)
{
  struct sockaddr_un sa;
  struct stat st;
  struct ucred who;
  socklen_t len = sizeof(who);
  NameUser user = NAME_USED;
  int fd;
  if (fstatat(sock.folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? NAME_FREE : NAME_USED;
  if (!S_ISSOCK(st.st_mode)) return NAME_USED;
  fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return NAME_USED;
  address_of(&sa, name);
  if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
    user = errno == ECONNREFUSED ? NAME_FREE : NAME_USED;
  else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.pid == getpid())
    user = NAME_OURS;
  close(fd);
  return user;
}

/* Does a process have the number in a name? A process of another pid namespace has another one. */
static int name_haspid(const char *name)
{
  char path[32];
  struct stat st;
  snprintf(path, sizeof(path), "/proc/%lu", strtoul(name, NULL, 10));
  return stat(path, &st) == 0 || errno != ENOENT;
}

/* Is a temporary name so old that its socket will not listen any more? */
static int name_isold(const char *name)
{
  struct stat st;
  return fstatat(sock.folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	 st.st_ctim.tv_sec + LISTEN_S < time(NULL);
}

/* Remove names of processes that have ended. A connection wakes the process that listens, so a sweep
** makes few to processes that exist, and those hide no name of a process that does not.
*/
static void folder_sweep(void)
{
  DIR *dir;
  struct dirent *de;
  int fd = openat(sock.folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int n = 0, live = 0, gone = 0;
  if (fd < 0) return;
  if ((dir = fdopendir(fd)) == NULL) {
    close(fd);
    return;
  }
  while (n++ < SWEEP_NAMES && gone < SWEEP_GONE && (de = readdir(dir)) != NULL) {
    const char *name = de->d_name;
    if (name[0] == TEMPORARY ? name_haspid(name + 1) || !name_isold(name)
			     : name_haspid(name) && live++ >= SWEEP_LIVE)
      continue;
    gone++;
    if (name_user(name) == NAME_FREE) unlinkat(sock.folder.fd, name, 0);
  }
  closedir(dir);
}

/* Sweep all folders of this user. It has later ones since another user had the first name, for a time. */
static void folders_sweep(void)
{
  char path[FOLDER_MAX];
  int err = errno, n, is_taken;
  for (n = 1; n <= FOLDERS + 1; n++) {
    if (folder_open(n, 0, &is_taken) || is_taken) continue;
    folder_sweep();
    lj_ownfd_close(&sock.folder);
    folder_path(n, path);
    if (n > 1) rmdir(path); /* Fails while it has names. */
  }
  errno = err;
}

/* -- Open and close ---------------------------------------------------------- */

/* Give the listening socket the first name that no process uses. */
static const char *name_take(const char *temporary)
{
  static int was_named; /* Later, a descriptor of our own may be left in another process. */
  NameUser user;
  struct stat st;
  int n;
  if (fstatat(sock.folder.fd, temporary, &st, AT_SYMLINK_NOFOLLOW) != 0)
    return problem("fstatat", strerror(errno));
  sock.ino = st.st_ino;
  for (n = 1; n <= NAMES; n++) {
    if (n == 1) snprintf(sock.name, sizeof(sock.name), "%ld", (long)getpid());
    else snprintf(sock.name, sizeof(sock.name), "%ld.%d", (long)getpid(), n);
    user = name_user(sock.name);
    if (user == NAME_OURS && !was_named)
      return problem("the folder",
		     "another copy of this library in the process is live, and "
		     "clients reach only that one");
    if (user != NAME_FREE) continue;
    if (renameat(sock.folder.fd, temporary, sock.folder.fd, sock.name) == 0) {
      was_named = 1;
      return NULL;
    }
    return problem("rename in", strerror(errno));
  }
  return problem("the folder", "other processes use all names of this process");
}

static const char *socket_listen(void)
{
  struct sockaddr_un sa;
  char temporary[NAME_SIZE];
  const char *why;
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!lj_ownfd_take(&sock.listens, fd)) return problem("socket for", strerror(errno));
  snprintf(temporary, sizeof(temporary), "%c%ld", TEMPORARY, (long)getpid());
  unlinkat(sock.folder.fd, temporary, 0);
  address_of(&sa, temporary);
  if (bind(sock.listens.fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
    return problem("bind in", strerror(errno));
  if (fchmodat(sock.folder.fd, temporary, 0600, 0) != 0)
    why = problem("chmod in", strerror(errno));
  else if (listen(sock.listens.fd, BACKLOG) != 0)
    why = problem("listen in", strerror(errno));
  else why = name_take(temporary);
  if (why) {
    int err = errno;
    unlinkat(sock.folder.fd, temporary, 0);
    sock.name[0] = '\0';
    errno = err;
  }
  return why;
}

static const char *pair_open(void)
{
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
    return problem("socketpair for", strerror(errno));
  if (lj_ownfd_take(&sock.hears, fds[0]) & lj_ownfd_take(&sock.rouses, fds[1])) return NULL;
  return problem("socketpair for", strerror(errno));
}

/* Does the name still lead to the socket? A cleaner of temporary files may have removed it, or the
** folder. A folder that it removed contains no name.
*/
static int sock_hasname(void)
{
  struct stat st;
  return fstatat(sock.folder.fd, sock.name, &st, AT_SYMLINK_NOFOLLOW) == 0
	   ? st.st_ino == sock.ino
	   : errno != ENOENT;
}

/* Look from time to time only: the caller does so at each of its looks. */
static int sock_isnamed(void)
{
  if (mono_ms() < sock.look_ms) return 1;
  sock.look_ms = mono_ms() + NAME_MS;
  return sock_hasname();
}

static int sock_isopen(void)
{
  return lj_ownfd_isours(&sock.folder) && lj_ownfd_isours(&sock.listens) &&
	 lj_ownfd_isours(&sock.hears) && lj_ownfd_isours(&sock.rouses);
}

static const char *sock_open(void)
{
  const char *why;
  folders_sweep();
  why = folder_find();
  if (!why) why = pair_open();
  return why ? why : socket_listen();
}

/* Another process may remove the folder meanwhile, with its own name. */
const char *lj_livesock_open(void)
{
  const char *why = NULL;
  int n;
  if (sock_isopen() && sock_isnamed()) return NULL;
  for (n = 0; n < OPEN_TRIES; n++) {
    lj_livesock_close(); /* The program may have closed a part. */
    errno = 0;
    if ((why = sock_open()) == NULL || errno != ENOENT) break;
  }
  if (why) lj_livesock_close();
  return why;
}

void lj_livesock_forget(void)
{
  sock.name[0] = '\0';
  sock.look_ms = 0;
  lj_ownfd_close(&sock.listens);
  lj_ownfd_close(&sock.hears);
  lj_ownfd_close(&sock.rouses);
  lj_ownfd_close(&sock.folder);
}

void lj_livesock_close(void)
{
  char path[FOLDER_MAX];
  int was_open = (sock.name[0] != '\0');
  if (sock.name[0] && lj_ownfd_isours(&sock.folder) && sock_hasname())
    unlinkat(sock.folder.fd, sock.name, 0);
  lj_livesock_forget();
  if (!was_open) return;
  folder_path(sock.nfolder, path);
  rmdir(path); /* Fails while other processes use it. */
}

/* -- Clients ----------------------------------------------------------------- */

/* What the background thread waits for. Its own copy: other threads open and close the socket. */
static struct {
  OwnFd fds[2 + LIVESOCK_CLIENTS]; /* The socket, the end that hears, clients. */
  int n, ms;
} waits;

void lj_livesock_prepare(const OwnFd *const *clients, int n, int ms)
{
  int i;
  waits.n = 0;
  if (!sock_isopen()) return;
  waits.fds[0] = sock.listens;
  waits.fds[1] = sock.hears;
  for (i = 0; i < n; i++) waits.fds[2 + i] = *clients[i];
  waits.n = 2 + n;
  waits.ms = ms;
}

int lj_livesock_wait(void)
{
  struct pollfd fds[2 + LIVESOCK_CLIENTS];
  char bytes[64];
  int i;
  if (!waits.n) return 0;
  for (i = 0; i < waits.n; i++) {
    fds[i].fd = lj_ownfd_isours(&waits.fds[i]) ? waits.fds[i].fd : -1;
    fds[i].events = POLLIN;
  }
  poll(fds, (nfds_t)waits.n, waits.ms);
  while (lj_ownfd_isours(&waits.fds[1]) && read(waits.fds[1].fd, bytes, sizeof(bytes)) > 0)
    ;
  return 1;
}

void lj_livesock_rouse(void)
{
  int err = errno;
  if (lj_ownfd_isours(&sock.rouses)) /* A full pair rouses, too. */
    send(sock.rouses.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  errno = err;
}

int lj_livesock_accept(OwnFd *client)
{
  static const char refused[] =
    "error another user owns the process; run the command as that user or as root";
  struct ucred who;
  while (lj_ownfd_isours(&sock.listens)) {
    socklen_t len = sizeof(who);
    int fd = accept4(sock.listens.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!lj_ownfd_take(client, fd)) return errno == EMFILE || errno == ENFILE ? -1 : 0;
    if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	(who.uid == geteuid() || who.uid == 0))
      return 1;
    send(client->fd, refused, sizeof(refused) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    lj_livesock_leave(client);
  }
  return 0;
}

void lj_livesock_leave(OwnFd *client)
{
  char bytes[64];
  ssize_t n = lj_ownfd_isours(client) ? read(client->fd, bytes, sizeof(bytes)) : 0;
  UNUSED(n);
  lj_ownfd_close(client);
}
