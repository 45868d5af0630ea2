package io.deepep.bench.launch;

import io.deepep.bench.run.UsageException;
import io.deepep.spi.posix.SysFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** One rank's process, whose lines are printed behind its number. */
final class RankProcess {
    /**
     * Becomes the command, beside a watcher that ends it, and what it has started, when the
     * launcher is gone: the pipe at the watcher's input ends then. It also ends when the command
     * has, whose child the watcher is then no more. The secret goes too. The watcher outlives what
     * ends the others: the terminal hangs up when the first of its processes is killed, and {@link
     * #terminate} asks all of the tree. (A child's own death signal would need code in the child,
     * and a group or session of its own would take it from the terminal.)
     */
    private static final String WATCHED =
            """
            command=$$ secret=$1
            shift
            end() {
                for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
                    [ "$child" = "$watcher" ] || end "$child"
                done
                kill -9 "$1" 2>/dev/null
            }
            exec 3<&0
            (
                trap '' HUP TERM
                read -r line <&3
                read -r watcher _ _ parent _ < /proc/self/stat
                [ "${parent:-$command}" = "$command" ] || exit 0
                [ -z "$secret" ] || rm -f -- "$secret"
                end "$command"
            ) >/dev/null 2>&1 </dev/null &
            exec "$@" </dev/null 3<&-
            """;

    private static final String NOT_THERE = "there is no such program";

    private final int rank;
    private final Process process;
    private final List<Thread> pumps;

    /** It, and what it had started, when they were asked to end. */
    private List<ProcessHandle> asked = List.of();

    private RankProcess(int rank, Process process, List<Thread> pumps) {
        this.rank = rank;
        this.process = process;
        this.pumps = pumps;
    }

    /**
     * Starts a command.
     *
     * @throws IOException if it cannot be started
     */
    static RankProcess start(
            int localRank,
            List<String> command,
            NumaBinding binding,
            RankVariables variables,
            RankOutput output)
            throws IOException {
        List<String> watched = new ArrayList<>(List.of("/bin/sh", "-c", WATCHED, "deepep-launch"));
        watched.add(variables.secretFile().map(Path::toString).orElse(""));
        watched.addAll(binding.prefix(localRank));
        watched.addAll(command);
        ProcessBuilder builder = new ProcessBuilder(watched);
        variables.writeTo(builder.environment(), localRank);
        Process process = builder.start();
        return new RankProcess(output.rank(), process, output.pump(process));
    }

    /**
     * Refuses what is no program: the shell would say it only when it runs. Files, not paths: these
     * cannot be made of names that the locale cannot spell, and the PATH may hold some.
     *
     * @throws UsageException if it is none
     */
    static void requireExecutable(String command) {
        boolean isFile = command.contains("/");
        boolean found =
                isFile
                        ? isProgram(new File(command))
                        : Arrays.stream(System.getenv().getOrDefault("PATH", "").split(":", -1))
                                .map(folder -> folder.isEmpty() ? "." : folder)
                                .anyMatch(folder -> isProgram(new File(folder, command)));
        if (!found) {
            throw new UsageException(
                    "launch: cannot start %s: %s"
                            .formatted(
                                    command,
                                    isFile
                                            ? whyNot(new File(command))
                                            : NOT_THERE + " on the PATH"));
        }
    }

    private static String whyNot(File file) {
        if (!file.exists()) {
            return NOT_THERE;
        }
        return file.isDirectory() ? "it is a folder" : "it is not executable; chmod +x it";
    }

    private static boolean isProgram(File file) {
        return file.isFile() && file.canExecute();
    }

    int rank() {
        return rank;
    }

    /** Completes when the process has ended. */
    CompletableFuture<RankProcess> ended() {
        return process.onExit().thenApply(ignored -> this);
    }

    /** What it ended with; of one that a signal ended, 128 and the signal's number. */
    int exitCode() {
        return process.exitValue();
    }

    /**
     * Waits for its last lines, until {@code deadline} of {@link System#nanoTime}: what it has
     * started and left behind may hold its output.
     */
    void awaitOutput(long deadline) throws InterruptedException {
        for (Thread pump : pumps) {
            pump.join(Duration.ofNanos(deadline - System.nanoTime()));
        }
    }

    /** Asks it, and what it has started, to end. */
    void terminate() {
        // A list, as ending the parent hides its children.
        asked = tree(process.toHandle()).toList();
        asked.forEach(ProcessHandle::destroy);
    }

    /** Whether any of those that were asked to end still runs. */
    boolean isEnding() {
        if (!process.isAlive()) {
            dismissWatcher();
        }
        return asked.stream().anyMatch(RankProcess::runs);
    }

    /** Java does it too, but only when nobody holds the output of the command any more. */
    private void dismissWatcher() {
        try {
            process.getOutputStream().close();
        } catch (IOException broken) {
            // It is gone.
        }
    }

    /** One that nobody waits for, as its parent has ended too, may stay as a zombie. */
    private static boolean runs(ProcessHandle handle) {
        return SysFiles.text(Path.of("/proc/" + handle.pid() + "/stat"))
                .filter(stat -> handle.isAlive() && stat.charAt(stat.lastIndexOf(')') + 2) != 'Z')
                .isPresent();
    }

    /** Ends those that were asked to end and have not, and what they have started since. */
    void kill() {
        asked.stream().flatMap(RankProcess::tree).toList().forEach(ProcessHandle::destroyForcibly);
    }

    private static Stream<ProcessHandle> tree(ProcessHandle root) {
        return Stream.concat(root.descendants(), Stream.of(root));
    }
}
