package io.deepep.spi.posix;

import io.deepep.error.DeepEpUnavailableException;

/** Passes file descriptors between the processes of a host. Fetching needs Linux 5.6 or later. */
public final class PosixFd {
    // The same numbers on every architecture.
    private static final long SYS_PIDFD_OPEN = 434;
    private static final long SYS_PIDFD_GETFD = 438;
    private static final long SYS_PRCTL_X86_64 = 157;
    private static final long SYS_PRCTL_AARCH64 = 167;
    private static final long PR_SET_PTRACER = 0x59616d61;
    private static final long PR_SET_PTRACER_ANY = -1;

    private PosixFd() {}

    /**
     * Allows other processes of the same user to fetch descriptors from this one, even if the
     * kernel's Yama module would allow it only to the parent process. Has no effect without that
     * module.
     */
    public static void allowFetching() {
        boolean arm = System.getProperty("os.arch").equals("aarch64");
        long prctl = arm ? SYS_PRCTL_AARCH64 : SYS_PRCTL_X86_64;
        try {
            Libc.get().syscall("prctl", prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0);
        } catch (Libc.Failure noYama) {
            // EINVAL: nothing to allow.
        }
    }

    /**
     * Duplicates a descriptor of another process into this one; {@link #close} it.
     *
     * @param pid the process, which has called {@link #allowFetching()}
     * @param fd the number there
     * @throws DeepEpUnavailableException if the kernel refuses
     */
    public static int fetch(long pid, int fd) {
        try {
            Libc libc = Libc.get();
            String open = "pidfd_open of process " + pid;
            int pidFd = (int) libc.syscall(open, SYS_PIDFD_OPEN, pid, 0, 0);
            try {
                String get = "pidfd_getfd of descriptor " + fd + " of process " + pid;
                return (int) libc.syscall(get, SYS_PIDFD_GETFD, pidFd, fd, 0);
            } finally {
                close(pidFd);
            }
        } catch (Libc.Failure refused) {
            throw new DeepEpUnavailableException(
                    refused.getMessage(),
                    "run the ranks as one user in one PID namespace; containers need --cap-add=SYS_PTRACE and --pid shared",
                    refused);
        }
    }

    /** Closes a descriptor. */
    public static void close(int fd) {
        try {
            Libc.get().close(fd);
        } catch (Libc.Failure notOpen) {
            throw new IllegalArgumentException("fd=" + fd + " is not an open descriptor", notOpen);
        }
    }
}
