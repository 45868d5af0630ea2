package io.deepep.bench.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** What a report says of recorded events, of which a run on the host has only some kinds. */
@Isolated("records")
class FlightAnswersTest {
    private static final long NO_TIME = Long.MIN_VALUE;

    @TempDir private Path folder;

    /** As the library's, but without what only the timeline reads, and what no report does. */
    @Name("io.deepep.Operation")
    @StackTrace(false)
    static class PartOfCall extends Event {
        final String mode = "normal";
        final String operation = "dispatch";
        final String format = "bf16";
        int rank;
        long nvlinkBytes;
        long rdmaBytes;
        @Timespan long beginTime;
        @Timespan long completeTime;
        @Timespan long deviceTime;
        boolean finished;
        String error;
    }

    /** The whole. */
    @Name("io.deepep.Operation")
    @StackTrace(false)
    static final class Call extends PartOfCall {
        long call;
        long tokens;
        long receivedRows;
    }

    /** The same. */
    @Name("io.deepep.Peer")
    @StackTrace(false)
    static final class Wait extends Event {
        final String mode = "normal";
        final String operation = "dispatch";
        int rank;
        int peer;
        long sentBytes = -1;
        @Timespan long waitTime;
    }

    /** The same. */
    @Name("io.deepep.ExpertLoad")
    @StackTrace(false)
    static final class Load extends Event {
        final String mode = "normal";
        int rank;
        int expert;
        int tokens;
    }

    static Load load(int rank, int expert, int tokens) {
        Load load = new Load();
        load.rank = rank;
        load.expert = expert;
        load.tokens = tokens;
        return load;
    }

    private static Call call(long deviceTime, long rdmaBytes, boolean finished, String error) {
        Call call = new Call();
        call.beginTime = 1000;
        call.completeTime = NO_TIME;
        call.deviceTime = deviceTime;
        call.nvlinkBytes = -1;
        call.rdmaBytes = rdmaBytes;
        call.finished = finished;
        call.error = error;
        return call;
    }

    private static Wait wait(int rank, int peer, long nanos) {
        Wait wait = new Wait();
        wait.rank = rank;
        wait.peer = peer;
        wait.waitTime = nanos;
        return wait;
    }

    private FlightSummary recorded(Event... events) throws IOException {
        FlightSummary flight = new FlightSummary(0);
        flight.add(ReportFixture.recording(folder.resolve("x.jfr"), events));
        return flight;
    }

    @Test
    void failedCallsAreNotUnfinishedOnes() throws IOException {
        FlightSummary.Calls calls =
                recorded(
                                call(4000, 300, true, null),
                                call(NO_TIME, 70, false, null),
                                call(NO_TIME, -1, false, "a time-out"))
                        .calls
                        .get("normal dispatch bf16");
        assertThat(calls.count).isEqualTo(3);
        assertThat(calls.failed).isOne();
        assertThat(calls.unfinished).isOne();
        assertThat(calls.rdmaBytes).isEqualTo(370);
        assertThat(calls.nvlinkBytes).isZero();
        assertThat(calls.hostMicros(50)).isEqualTo(1);
        assertThat(calls.deviceMicros(50)).isEqualTo(4);
    }

    @Test
    void theSlowestIsWhoKeptAllOthers() throws IOException {
        FlightSummary flight =
                recorded(
                        wait(0, 1, 10_000),
                        wait(2, 0, 15_000),
                        wait(0, 1, 5_000),
                        wait(2, 1, 10_000),
                        wait(1, 2, NO_TIME));
        assertThat(flight.waits)
                .isDeepEqualTo(new long[][] {{0, 15_000, 0}, {0, 0, 0}, {15_000, 10_000, 0}});
        assertThat(flight.traffic).isEmpty();
        ReportPage page = new ReportPage("", "");
        Glance.add(page, List.of(), flight);
        FlightReport.add(page, flight);
        assertThat(page.html())
                .contains("rank 1, which caused 63 % of all waits")
                .contains("Rank 1 kept the others longest: 63 % of all waits.")
                .containsPattern(">15.0 µs</td>\\s*<td[^>]*>15.0 µs<")
                .containsPattern(">0 µs</td>\\s*<td[^>]*>25.0 µs<");
    }

    /** Its experts are not spread over all ranks. */
    @Test
    void oneRecordingOfSeveral() throws IOException {
        Wait sent = wait(0, 1, 0);
        sent.sentBytes = 1;
        FlightSummary flight = recorded(load(0, 0, 5), load(0, 1, 7), sent);
        ReportPage page = new ReportPage("", "");
        FlightReport.add(page, flight);
        assertThat(page.sections.getLast().tables().getFirst().rows())
                .singleElement()
                .extracting(row -> row.cells().stream().map(ReportPage.Cell::text).toList())
                .isEqualTo(List.of("0", "2", "12"));
    }

    @Test
    void expertsWithoutARecordingAreCounted() throws IOException {
        FlightSummary flight = recorded(load(1, 2, 5), load(1, 3, 0));
        ReportPage page = new ReportPage("", "");
        Glance.add(page, List.of(), flight);
        FlightReport.add(page, flight);
        String note =
                " 2 experts have no recording and count as 0; give the recordings of all ranks.";
        assertThat(page.sections.getLast().text()).contains(note);
        assertThat(page.sections.getFirst().tables().getFirst().rows())
                .singleElement()
                .extracting(row -> row.cells().get(1).text())
                .isEqualTo("expert 2, with 4.00 times the mean." + note);
    }

    @Test
    void theHottestExpertAndTheSumsOfRanks() {
        ReportPage page = new ReportPage("", "");
        ExpertLoad.add(page, "load", "load.svg", "Tokens.", new long[] {1, 2, 9, 0}, 2);
        ReportPage.Section section = page.sections.getFirst();
        assertThat(section.text())
                .isEqualTo("Tokens. The busiest is expert 2, with 3.00 times the mean.");
        assertThat(section.tables().getFirst().rows())
                .extracting(row -> row.cells().getLast().text())
                .containsExactly("3", "9");
        ExpertLoad.add(page, "load", "load.svg", "Tokens.", new long[4], 3);
        assertThat(page.sections.getLast().text()).isEqualTo("Tokens. No tokens.");
        assertThat(page.sections.getLast().tables()).isEmpty();
    }
}
