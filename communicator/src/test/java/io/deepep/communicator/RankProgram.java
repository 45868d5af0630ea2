package io.deepep.communicator;

import io.deepep.Communicator;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;

/**
 * One rank in a process of its own, told by its input what to do. Answers every command with a
 * line; nothing else may appear in its output.
 */
final class RankProgram {
    private RankProgram() {}

    /**
     * Joins the group that the environment describes, then obeys.
     *
     * @param args how many milliseconds to wait for other ranks: at the start, in a call
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        Duration start = Duration.ofMillis(Long.parseLong(args[0]));
        Duration call = Duration.ofMillis(Long.parseLong(args[1]));
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Communicator communicator = Communicator.fromEnvironment(start)) {
            System.out.println("joined " + communicator.rank() + " of " + communicator.size());
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(answer(communicator, line, call));
            }
        } catch (RuntimeException refused) {
            System.out.println(describe(refused));
            System.exit(1);
        }
        System.out.println(isClosed() ? "left" : "left, and still closing");
    }

    /** Waits a little: whoever closes does not wait for everything. */
    private static boolean isClosed() throws InterruptedException {
        for (Thread each : Thread.getAllStackTraces().keySet()) {
            if (each.getName().startsWith("deepep-close-") && !each.join(Duration.ofSeconds(5))) {
                return false;
            }
        }
        return true;
    }

    private static String answer(Communicator communicator, String line, Duration timeout) {
        try {
            if (line.startsWith("alive ")) {
                return String.valueOf(communicator.isAlive(Integer.parseInt(line.substring(6))));
            }
            if (line.startsWith("fail ")) {
                communicator.fail(new IOException(line.substring(5)));
                return "failed";
            }
            if (line.startsWith("bytes ")) {
                communicator.allGather(new byte[Integer.parseInt(line.substring(6))], timeout);
                return "got them";
            }
            List<byte[]> all =
                    communicator.allGather(line.getBytes(StandardCharsets.UTF_8), timeout);
            return all.stream()
                    .map(message -> new String(message, StandardCharsets.UTF_8))
                    .collect(Collectors.joining(","));
        } catch (RuntimeException failure) {
            return describe(failure);
        }
    }

    private static String describe(RuntimeException failure) {
        return failure.getClass().getSimpleName() + ": " + failure.getMessage();
    }
}
