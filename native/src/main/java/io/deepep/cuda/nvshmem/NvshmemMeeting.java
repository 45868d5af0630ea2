package io.deepep.cuda.nvshmem;

import io.deepep.Communicator;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.Meeting;
import java.time.Duration;
import java.util.List;
import java.util.SortedMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Steps that all ranks take together, so that nobody goes on into a native call that would wait for
 * ever for a rank that cannot.
 */
final class NvshmemMeeting {
    private final Meeting meeting;

    NvshmemMeeting(Communicator communicator, Duration timeout) {
        meeting =
                new Meeting(
                        communicator,
                        timeout,
                        "NVSHMEM cannot start",
                        "check the machine with deepep doctor");
    }

    /** {@link Meeting#together}. */
    List<String> together(Supplier<String> part) {
        return meeting.together(part);
    }

    /**
     * Compares settings that all ranks must share.
     *
     * @param gathered of every rank, as {@link #encodeSettings} wrote them
     * @throws RankMismatchException on every rank, with both values
     */
    static void requireSame(List<String> gathered) {
        List<String> first = gathered.getFirst().lines().toList();
        for (int rank = 1; rank < gathered.size(); rank++) {
            List<String> other = gathered.get(rank).lines().toList();
            for (int i = 0; i < first.size(); i++) {
                if (!first.get(i).equals(other.get(i))) {
                    throw RankMismatchException.of(
                            "NVSHMEM",
                            name(first.get(i)),
                            0,
                            value(first.get(i)),
                            rank,
                            value(other.get(i)));
                }
            }
        }
    }

    /** Lines of NAME=VALUE; the same names on every rank. */
    static String encodeSettings(SortedMap<String, String> settings) {
        return settings.entrySet().stream()
                .map(setting -> setting.getKey() + "=" + setting.getValue())
                .collect(Collectors.joining("\n"));
    }

    private static String name(String setting) {
        return setting.substring(0, setting.indexOf('='));
    }

    private static String value(String setting) {
        return setting.substring(setting.indexOf('=') + 1);
    }
}
