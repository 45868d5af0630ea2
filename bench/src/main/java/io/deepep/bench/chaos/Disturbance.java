package io.deepep.bench.chaos;

import java.io.Closeable;
import java.io.FileInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** What a trial does to its victim, by the victim's own hand; nothing to all other ranks. */
final class Disturbance implements AutoCloseable {
    /** Of the time-out: how late a slow rank begins each call. */
    private static final int LATE_PART = 6;

    private static final Path NULL_DEVICE = Path.of("/dev/null");

    private final Trial trial;
    private final boolean isVictim;
    private final Duration timeout;
    private final Signals signals;
    private final int meetingPort;
    private final List<Closeable> hoard = new ArrayList<>();
    private boolean done;
    private boolean limited;

    /**
     * Of one rank in one run.
     *
     * @param timeout of its buffer
     * @param signals to its own process
     * @param meetingPort of rank 0, if ranks are processes
     */
    Disturbance(Trial trial, int rank, Duration timeout, Signals signals, int meetingPort) {
        this.trial = trial;
        this.isVictim = rank == trial.victim();
        this.timeout = timeout;
        this.signals = signals;
        this.meetingPort = meetingPort;
    }

    /** The victim closes everything in order, and goes. */
    static final class Left extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private Left() {
            super("left on purpose", null, false, false);
        }
    }

    /** The rank comes to a moment that belongs to no round. */
    void at(Moment moment) {
        at(moment, trial.round());
    }

    /** The rank comes to a moment of a round. */
    void at(Moment moment, int round) {
        if (!isVictim) {
            return;
        }
        if (trial.action() == Action.SLOW) {
            if (round >= trial.round()) {
                LockSupport.parkNanos(timeout.toNanos() / LATE_PART);
            }
        } else if (!done && moment == trial.moment() && round == trial.round()) {
            done = true;
            strike();
        }
    }

    /** The victim of a kill ends here if it has not yet: it must not meet the others again. */
    void awaitEnd() {
        if (isVictim) {
            LockSupport.parkNanos(timeout.toNanos());
            throw new IllegalStateException("the victim was not killed");
        }
    }

    private void strike() {
        switch (trial.action()) {
            case KILL -> after(signals::kill);
            case PAUSE, FREEZE -> after(signals::stop);
            case THROW -> throw new IllegalStateException("thrown on purpose");
            case LEAVE -> throw new Left();
            case STARVE -> starve();
            case SLOW -> throw new IllegalStateException("a slow rank is slow all the time");
        }
    }

    /** From another thread, so that it can be at any instruction of the rank's own. */
    private void after(Runnable signal) {
        Thread.ofPlatform()
                .daemon()
                .start(
                        () -> {
                            LockSupport.parkNanos(
                                    TimeUnit.MICROSECONDS.toNanos(trial.delayMicros()));
                            signal.run();
                        });
    }

    /**
     * Half of the trials take files to open, the others room in files and in shared memory. Before
     * ranks meet, rank 0 loses the port that they meet at.
     */
    private void starve() {
        if (trial.starvesPort()) {
            takePort();
        } else if (trial.seed() % 2 == 0) {
            signals.limitFileSize(0);
            limited = true;
        } else {
            takeFiles();
        }
    }

    /** Somebody else listens there, and says nothing to those who come. */
    private void takePort() {
        try {
            ServerSocket stranger = new ServerSocket();
            hoard.add(stranger);
            stranger.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), meetingPort));
        } catch (IOException taken) {
            throw new IllegalStateException("port " + meetingPort + " is not free", taken);
        }
    }

    private void takeFiles() {
        try {
            while (true) {
                hoard.add(new FileInputStream(NULL_DEVICE.toFile()));
            }
        } catch (IOException full) {
            // As wanted: the process has as many files open as it may.
        }
    }

    /** Gives back what was hoarded. */
    @Override
    public void close() {
        for (Closeable file : hoard) {
            try {
                file.close();
            } catch (IOException impossible) {
                throw new IllegalStateException("closing " + file + " failed", impossible);
            }
        }
        hoard.clear();
        if (limited) {
            signals.limitFileSize(Signals.UNLIMITED);
        }
    }
}
