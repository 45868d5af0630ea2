package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.RankMismatchException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Steps that all ranks take together. */
class MeetingTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private interface Body {
        void run(int rank, Meeting meeting);
    }

    private static void onThreeRanks(Body body) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(3)) {
            group.run(
                    communicator ->
                            body.run(
                                    communicator.rank(),
                                    new Meeting(communicator, LONG, "no luck", "try again")));
        }
    }

    @Test
    void gathersWhatEachRankSays() throws InterruptedException {
        onThreeRanks(
                (rank, meeting) -> {
                    assertThat(meeting.together(() -> "I am " + rank))
                            .containsExactly("I am 0", "I am 1", "I am 2");
                    assertThat(meeting.together(() -> "")).containsExactly("", "", "");
                });
    }

    @Test
    void whatARankSaysMayBeLong() throws InterruptedException {
        String text = "\u00e9".repeat(100_000);
        onThreeRanks(
                (rank, meeting) ->
                        assertThat(meeting.together(() -> text + rank))
                                .containsExactly(text + 0, text + 1, text + 2));
    }

    @Test
    void allLearnOfAFailureWithoutWords() throws InterruptedException {
        onThreeRanks(
                (rank, meeting) ->
                        assertThatThrownBy(
                                        () ->
                                                meeting.together(
                                                        () -> {
                                                            throw new IllegalStateException("");
                                                        }))
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessageContaining("rank 0: java.lang.IllegalStateException"));
    }

    @Test
    void allLearnWhoFailedAndTheFirstCure() throws InterruptedException {
        onThreeRanks(
                (rank, meeting) -> {
                    assertThatThrownBy(() -> meeting.together(() -> part(rank)))
                            .isInstanceOf(DeepEpUnavailableException.class)
                            .hasMessage(
                                    "no luck: rank 1: the door is locked; rank 2: java.lang.IllegalStateException;"
                                            + " turn the key");
                    assertThat(meeting.together(() -> "go on")).hasSize(3);
                });
    }

    @Test
    void aRankThrowsItsOwnFailureEvenIfAnotherIsGone() throws InterruptedException {
        IllegalStateException own = new IllegalStateException("the door is locked");
        try (InProcessGroup group = InProcessGroup.of(2)) {
            group.communicator(1).fail(new IllegalStateException("killed"));
            Meeting meeting = new Meeting(group.communicator(0), LONG, "no luck", "try again");
            assertThatThrownBy(
                            () ->
                                    meeting.step(
                                            () -> {
                                                throw own;
                                            }))
                    .isSameAs(own);
            assertThat(own.getSuppressed())
                    .singleElement()
                    .isInstanceOfSatisfying(
                            DeepEpTimeoutException.class,
                            lost -> assertThat(lost.peer()).isEqualTo(1));
        }
    }

    /** Rank 2 ends before it says that it has taken the step, or just after. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoseMemoryIsGoneIsNamed(boolean answers) throws InterruptedException {
        onThreeRanks(
                (rank, meeting) -> {
                    if (rank == 2) {
                        if (answers) {
                            assertThatThrownBy(() -> meeting.step(() -> {}))
                                    .hasMessageContaining("rank 0: there is no such process");
                        }
                        meeting.communicator().fail(new IllegalStateException("killed"));
                        return;
                    }
                    assertThatThrownBy(() -> meeting.stepOnPeers(() -> useMemory(rank)))
                            .isInstanceOfSatisfying(
                                    DeepEpTimeoutException.class,
                                    lost -> {
                                        assertThat(lost.peer()).isEqualTo(2);
                                        if (answers) {
                                            assertThat(lost.getSuppressed()[0])
                                                    .hasMessageContaining("no such process");
                                        }
                                    });
                });
    }

    /**
     * Ranks of a node are numbered from 0 there, but errors name them by their rank in the group.
     */
    @Test
    void whoseMemoryIsGoneIsNamedOnTheSecondNodeToo() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(4)) {
            group.run(
                    communicator -> {
                        int rank = communicator.rank();
                        var node = new NodeCommunicator(communicator, new EpTopology(rank, 4, 2));
                        Meeting meeting = new Meeting(node, LONG, "no luck", "try again");
                        if (rank == 3) {
                            communicator.fail(new IllegalStateException("killed"));
                            return;
                        }
                        assertThatThrownBy(() -> meeting.stepOnPeers(() -> useMemory(rank - 2)))
                                .as("rank " + rank)
                                .isInstanceOfSatisfying(
                                        DeepEpTimeoutException.class,
                                        lost -> assertThat(lost.peer()).isEqualTo(3));
                    });
        }
    }

    private static void useMemory(int rank) {
        if (rank == 0) {
            throw new DeepEpUnavailableException("there is no such process", "start it");
        }
    }

    @Test
    void aFailureOnPeersThatAreThereIsToldAsEver() throws InterruptedException {
        onThreeRanks(
                (rank, meeting) -> {
                    assertThatThrownBy(() -> meeting.stepOnPeers(() -> useMemory(rank)))
                            .isInstanceOf(DeepEpUnavailableException.class)
                            .hasMessage("no luck: rank 0: there is no such process; start it");
                    assertThat(meeting.together(() -> "go on")).hasSize(3);
                });
    }

    /** Not after another wait, and not as that wait's time-out. */
    @Test
    void aFailureBesideOneWhoIsLateIsToldAtOnce() throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(2)) {
            CountDownLatch told = new CountDownLatch(1);
            group.run(
                    communicator -> {
                        if (communicator.rank() == 1) {
                            told.await();
                            return;
                        }
                        Meeting meeting =
                                new Meeting(communicator, Duration.ofMillis(20), "no luck", "");
                        Throwable failure =
                                catchThrowable(() -> meeting.stepOnPeers(() -> useMemory(0)));
                        told.countDown();
                        assertThat(failure)
                                .isInstanceOf(DeepEpUnavailableException.class)
                                .hasMessage("there is no such process; start it");
                    });
        }
    }

    /** As a barrier, which says nothing; or something else of the user's. */
    @Test
    void whoMakesAnotherCallIsNamed() throws InterruptedException {
        String empty = "\0\0\0\0";
        for (String other :
                List.of("", "join", "\0\0\0\u0009", "\u00ff".repeat(4), empty, empty.repeat(4))) {
            byte[] message = other.getBytes(StandardCharsets.ISO_8859_1);
            try (InProcessGroup group = InProcessGroup.of(2)) {
                group.run(
                        communicator -> {
                            if (communicator.rank() == 1) {
                                communicator.allGather(message, LONG);
                                return;
                            }
                            Meeting meeting = new Meeting(communicator, LONG, "no luck", "");
                            assertThatThrownBy(() -> meeting.together(() -> "here"))
                                    .isInstanceOf(RankMismatchException.class)
                                    .hasMessageStartingWith(
                                            "no luck: rank 1 makes a different call");
                        });
            }
        }
    }

    private static String part(int rank) {
        return switch (rank) {
            case 1 -> throw new DeepEpUnavailableException("the door is locked", "turn the key");
            case 2 -> throw new IllegalStateException();
            default -> "open";
        };
    }
}
