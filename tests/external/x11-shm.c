// SPDX-License-Identifier: MIT
/*
 * x11-shm: a client of the X server's MIT-SHM extension, that compares every pixel; x11.sh starts
 * it.
 *
 *   x11-shm pictures   pictures go both ways through segments, and the same ones through the
 *                      socket; what they show must agree. Prints "done".
 *   x11-shm hold       shows a picture from a segment that is already marked for removal, prints
 *                      its id, and waits to be killed.
 *   x11-shm survive    the same, but waits for the end of the server and then looks whether it is
 *                      the only one that has the segment attached. Prints "survived".
 *
 * The server gets no more of a segment than its id, attaches it in its own process, and is told
 * nothing of its removal. An exit status other than 0 comes with a line that says what was wrong.
 */
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

enum {
	WIDTH = 317, /* such that lines end within a page */
	HEIGHT = 211,
	DEADLINE_S = 20,
};

struct picture {
	XImage *image;
	XShmSegmentInfo shm;
};

static Display *display;
static Window root;
static GC gc;
static int last_error;
static struct picture kept;

static _Noreturn void wrong(const char *what)
{
	printf("false: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static void check(bool true_, const char *what)
{
	if (!true_)
		wrong(what);
}

static int note_error(Display *d, XErrorEvent *event)
{
	(void)d;
	last_error = event->error_code;
	return 0;
}

/* The error that the requests since the last call led to, 0 for none. */
static int error_of_requests(void)
{
	int error;

	XSync(display, False);
	error = last_error;
	last_error = 0;
	return error;
}

static long nattch(int id)
{
	struct shmid_ds ds;

	return shmctl(id, IPC_STAT, &ds) == 0 ? (long)ds.shm_nattch : -errno;
}

/* The server lets go of a segment after the request has been answered, at the latest soon. */
static bool nattch_becomes(int id, long count)
{
	const struct timespec pause = {0, 10000000};
	const time_t end = time(NULL) + DEADLINE_S;

	while (nattch(id) != count) {
		if (time(NULL) > end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * The kernel closes the sockets of a process that dies before it lets go of the files that it had
 * mapped. Where segments are such files, the last shmdt may therefore come before that.
 */
static bool ends(int id)
{
	const struct timespec pause = {0, 10000000};
	const time_t end = time(NULL) + DEADLINE_S;

	while (nattch(id) >= 0) {
		if (time(NULL) > end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* The image refers to the picture, which therefore stays where it is. */
static void make_picture(struct picture *p)
{
	p->image = XShmCreateImage(display, DefaultVisual(display, 0),
				   (unsigned int)DefaultDepth(display, 0), ZPixmap, NULL, &p->shm,
				   WIDTH, HEIGHT);
	check(p->image != NULL, "XShmCreateImage");
	p->shm.shmid = shmget(IPC_PRIVATE, (size_t)p->image->bytes_per_line * HEIGHT, 0600);
	check(p->shm.shmid != -1, "shmget");
	p->shm.shmaddr = p->image->data = shmat(p->shm.shmid, NULL, 0);
	check((intptr_t)p->shm.shmaddr != -1, "shmat");
	p->shm.readOnly = False;
}

static void attach(struct picture *p)
{
	check(XShmAttach(display, &p->shm), "XShmAttach");
	check(error_of_requests() == 0, "the server attaches a segment");
	check(nattch(p->shm.shmid) == 2, "attached by client and server");
}

/* Detached by both, which ends it if it was marked for removal. */
static void end_picture(struct picture *p)
{
	check(XShmDetach(display, &p->shm), "XShmDetach");
	check(error_of_requests() == 0, "the server detaches a segment");
	check(nattch_becomes(p->shm.shmid, 1), "detached by the server");
	p->image->data = NULL;
	XDestroyImage(p->image);
	check(shmdt(p->shm.shmaddr) == 0, "shmdt");
	check(nattch(p->shm.shmid) == -EINVAL || nattch(p->shm.shmid) == -EIDRM,
	      "a removed segment ends with the last one who had it attached");
}

static unsigned long pixel_of(int x, int y, unsigned int seed)
{
	return ((uint32_t)x * 2654435761U ^ (uint32_t)y * 40503U ^ seed * 97U) & 0xffffff;
}

static void fill(XImage *image, unsigned int seed)
{
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			XPutPixel(image, x, y, pixel_of(x, y, seed));
}

static bool shows(XImage *image, unsigned int seed)
{
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			if ((XGetPixel(image, x, y) & 0xffffff) != pixel_of(x, y, seed))
				return false;
	return true;
}

static bool drawn(Drawable where, unsigned int seed)
{
	XImage *image = XGetImage(display, where, 0, 0, WIDTH, HEIGHT, AllPlanes, ZPixmap);
	bool right;

	check(image != NULL, "XGetImage");
	right = shows(image, seed);
	XDestroyImage(image);
	return right;
}

static void draw_plainly(Drawable where, unsigned int seed)
{
	XImage *image = XGetImage(display, where, 0, 0, WIDTH, HEIGHT, AllPlanes, ZPixmap);

	check(image != NULL, "XGetImage");
	fill(image, seed);
	XPutImage(display, where, gc, image, 0, 0, 0, 0, WIDTH, HEIGHT);
	XDestroyImage(image);
}

static void compare_both_ways(void)
{
	struct picture p, q;
	Pixmap pixmap =
		XCreatePixmap(display, root, WIDTH, HEIGHT, (unsigned int)DefaultDepth(display, 0));

	make_picture(&p);
	make_picture(&q);
	attach(&p);
	attach(&q);
	check(shmctl(p.shm.shmid, IPC_RMID, NULL) == 0, "IPC_RMID");
	check(shmctl(q.shm.shmid, IPC_RMID, NULL) == 0, "IPC_RMID");
	for (unsigned int round = 0; round < 10; round++) {
		fill(p.image, round);
		XShmPutImage(display, pixmap, gc, p.image, 0, 0, 0, 0, WIDTH, HEIGHT, False);
		XSync(display, False);
		check(drawn(pixmap, round), "the server has read what we wrote");
		draw_plainly(pixmap, round + 1000);
		memset(q.image->data, 0, (size_t)q.image->bytes_per_line * HEIGHT);
		check(XShmGetImage(display, pixmap, q.image, 0, 0, AllPlanes), "XShmGetImage");
		check(shows(q.image, round + 1000), "we read what the server has written");
		check(shows(p.image, round), "the other segment is as it was");
	}
	check(error_of_requests() == 0, "no error of the server");
	XFreePixmap(display, pixmap);
	end_picture(&p);
	end_picture(&q);
}

/* A pixmap that lies in the segment: each sees at once what the other draws. */
static void share_pixmap(void)
{
	struct picture p;
	Pixmap pixmap;

	make_picture(&p);
	attach(&p);
	pixmap = XShmCreatePixmap(display, root, p.shm.shmaddr, &p.shm, WIDTH, HEIGHT,
				  (unsigned int)DefaultDepth(display, 0));
	fill(p.image, 7);
	check(drawn(pixmap, 7), "the server sees what we drew into a shared pixmap");
	XSetForeground(display, gc, 0x336699);
	XFillRectangle(display, pixmap, gc, 10, 20, 30, 40);
	check(error_of_requests() == 0, "XFillRectangle");
	for (int y = 0; y < HEIGHT; y++) {
		for (int x = 0; x < WIDTH; x++) {
			bool inside = x >= 10 && x < 40 && y >= 20 && y < 60;

			check((XGetPixel(p.image, x, y) & 0xffffff) ==
				      (inside ? 0x336699 : pixel_of(x, y, 7)),
			      "we see what the server drew into a shared pixmap");
		}
	}
	XFreePixmap(display, pixmap);
	check(shmctl(p.shm.shmid, IPC_RMID, NULL) == 0, "IPC_RMID");
	end_picture(&p);
}

static void be_refused(void)
{
	struct picture p;
	XShmSegmentInfo none;

	make_picture(&p);
	none = p.shm;
	none.shmid = p.shm.shmid + 32768; /* the same slot, another sequence number */
	check(XShmAttach(display, &none), "XShmAttach");
	check(error_of_requests() == BadAccess, "an id that does not exist");

	p.shm.readOnly = True;
	attach(&p);
	fill(p.image, 3);
	check(XShmPutImage(display, root, gc, p.image, 0, 0, 0, 0, WIDTH, HEIGHT, False) &&
		      error_of_requests() == 0,
	      "the server reads a segment that it has attached read-only");
	/* Xlib does not pass on the BadAccess that answers this request. */
	check(!XShmGetImage(display, root, p.image, 0, 0, AllPlanes), "it does not write there");
	check(shows(p.image, 3), "nothing was written");
	check(shmctl(p.shm.shmid, IPC_RMID, NULL) == 0, "IPC_RMID");
	end_picture(&p);
}

static int at_the_end_of_the_server(Display *d)
{
	(void)d;
	check(nattch_becomes(kept.shm.shmid, 1), "only we have the segment attached");
	check(shows(kept.image, 5), "its contents are there");
	check(shmdt(kept.shm.shmaddr) == 0, "shmdt");
	check(ends(kept.shm.shmid), "it ends with us");
	printf("survived\n");
	exit(0);
}

static void hold(void)
{
	XEvent event;

	make_picture(&kept);
	attach(&kept);
	check(shmctl(kept.shm.shmid, IPC_RMID, NULL) == 0, "IPC_RMID");
	fill(kept.image, 5);
	XShmPutImage(display, root, gc, kept.image, 0, 0, 0, 0, WIDTH, HEIGHT, False);
	check(error_of_requests() == 0, "XShmPutImage");
	printf("%d\n", kept.shm.shmid);
	fflush(stdout);
	for (;;)
		XNextEvent(display, &event);
}

int main(int argc, char **argv)
{
	int major, minor;
	Bool pixmaps;

	alarm(100);
	if (argc != 2)
		return 2;
	display = XOpenDisplay(NULL);
	check(display != NULL, "XOpenDisplay");
	root = DefaultRootWindow(display);
	gc = XCreateGC(display, root, 0, NULL);
	XSetErrorHandler(note_error);
	check(XShmQueryVersion(display, &major, &minor, &pixmaps), "there is MIT-SHM");
	if (strcmp(argv[1], "pictures") == 0) {
		check(pixmaps && XShmPixmapFormat(display) == ZPixmap, "there are shared pixmaps");
		compare_both_ways();
		share_pixmap();
		be_refused();
		check(error_of_requests() == 0, "no error of the server");
		XCloseDisplay(display);
		printf("done\n");
		return 0;
	}
	if (strcmp(argv[1], "survive") == 0)
		XSetIOErrorHandler(at_the_end_of_the_server);
	hold();
}
