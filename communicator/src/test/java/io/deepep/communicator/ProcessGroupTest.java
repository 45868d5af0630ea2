package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Groups whose ranks are processes, with the variables that launchers set. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ProcessGroupTest {
    private static final long PATIENT = 110_000;
    private static final int FAILURE_SECONDS = 2;

    private final List<RankProcess> started = new ArrayList<>();

    @AfterEach
    void killAll() {
        started.forEach(RankProcess::close);
    }

    private static Map<String, String> variables(int rank, int size, String address, int port) {
        Map<String, String> variables = Groups.variables(rank, size, address, port);
        variables.put("DEEPEP_FAILURE_SECONDS", Integer.toString(FAILURE_SECONDS));
        return variables;
    }

    private static Map<String, String> variables(int rank, int size, int port) {
        return variables(rank, size, "127.0.0.1", port);
    }

    private RankProcess start(Map<String, String> variables, long startMillis) throws IOException {
        RankProcess rank = RankProcess.start(variables, startMillis, PATIENT);
        started.add(rank);
        return rank;
    }

    private RankProcess start(Map<String, String> variables) throws IOException {
        return start(variables, PATIENT);
    }

    private List<RankProcess> startAll(int size, String address, int port) throws IOException {
        List<RankProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            ranks.add(start(variables(rank, size, address, port)));
        }
        return ranks;
    }

    private static void assertJoined(List<RankProcess> ranks) throws IOException {
        for (int rank = 0; rank < ranks.size(); rank++) {
            assertThat(ranks.get(rank).hear()).isEqualTo("joined " + rank + " of " + ranks.size());
        }
    }

    /**
     * A line that none of the protocols' libraries wrote: what the program says is all there is.
     */
    private static void assertExchange(List<RankProcess> ranks) throws IOException {
        List<String> words = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            words.add("word" + rank);
            ranks.get(rank).tell(words.get(rank));
        }
        for (RankProcess rank : ranks) {
            assertThat(rank.hear()).isEqualTo(String.join(",", words));
        }
    }

    private static void assertLeave(List<RankProcess> ranks) throws InterruptedException {
        for (RankProcess rank : ranks) {
            assertThat(rank.leave()).containsExactly("left");
            assertThat(rank.exitCode()).isZero();
        }
    }

    @Test
    void exchangeAndSayNothingElse() throws Exception {
        List<RankProcess> ranks = startAll(4, "127.0.0.1", LoopbackPorts.free());
        assertJoined(ranks);
        assertExchange(ranks);
        assertExchange(ranks);
        assertLeave(ranks);
    }

    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void ranksMayComeLateAndInAnyOrder() throws Exception {
        int port = LoopbackPorts.free();
        RankProcess two = start(variables(2, 3, port));
        awaitCall(port);
        RankProcess zero = start(variables(0, 3, port));
        Thread.sleep(1500);
        RankProcess one = start(variables(1, 3, port));
        List<RankProcess> ranks = List.of(zero, one, two);
        assertJoined(ranks);
        assertExchange(ranks);
        assertLeave(ranks);
    }

    @Test
    void aKilledRankIsMissedByAll() throws Exception {
        List<RankProcess> ranks = startAll(3, "127.0.0.1", LoopbackPorts.free());
        assertJoined(ranks);
        ranks.get(1).tell("waiting"); // in a call while rank 0, which holds the group, is killed
        ranks.getFirst().kill();
        assertThat(ranks.get(1).hear())
                .startsWith("DeepEpTimeoutException: ")
                .contains("rank 1", "for rank 0 in communicator exchange");
        ranks.get(2).awaitDeathOf(0);
        assertThat(ranks.get(2).ask("alive 1")).isEqualTo("true");
        assertThat(ranks.get(1).ask("alive 0")).isEqualTo("false");
        assertThat(ranks.get(2).ask("a call without rank 0"))
                .contains("for rank 0 in communicator exchange");
    }

    @Test
    void aRankThatThrowsTellsTheOthersWhy() throws Exception {
        List<RankProcess> ranks = startAll(3, "127.0.0.1", LoopbackPorts.free());
        assertJoined(ranks);
        ranks.get(0).tell("waiting");
        ranks.get(1).tell("waiting");
        assertThat(ranks.get(2).ask("fail disk full")).isEqualTo("failed");
        for (int rank = 0; rank < 2; rank++) {
            assertThat(ranks.get(rank).hear())
                    .startsWith(
                            "DeepEpTimeoutException: rank 2 failed: java.io.IOException: disk full; rank ")
                    .endsWith("for rank 2 in communicator exchange");
            assertThat(ranks.get(rank).ask("alive 2")).isEqualTo("false");
        }
    }

    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void aRankThatHangsIsTakenForDead() throws Exception {
        int port = LoopbackPorts.free();
        RankProcess hanging = RankProcess.start(variables(2, 3, port), PATIENT, 3_000);
        started.add(hanging);
        List<RankProcess> ranks =
                List.of(start(variables(0, 3, port)), start(variables(1, 3, port)), hanging);
        assertJoined(ranks);
        hanging.signal("STOP");
        ranks.get(0).awaitDeathOf(2);
        ranks.get(1).awaitDeathOf(2);
        assertThat(ranks.get(0).ask("alive 1")).isEqualTo("true");

        // Back among the living, it is not taken back, and learns why.
        hanging.signal("CONT");
        assertThat(hanging.ask("I am here"))
                .startsWith("DeepEpUnavailableException")
                .contains("has taken it for lost", "DEEPEP_FAILURE_SECONDS");
        assertThat(ranks.get(0).ask("alive 2")).isEqualTo("false");
    }

    /** So long that JGroups holds it back until it is read; what is short comes behind it. */
    @Test
    void aLongMessageToARankThatHangsHoldsUpNobody() throws Exception {
        int port = LoopbackPorts.free();
        List<RankProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            Map<String, String> patient = variables(rank, 2, port);
            patient.put("DEEPEP_FAILURE_SECONDS", "60");
            ranks.add(RankProcess.start(patient, PATIENT, 1_000));
        }
        started.addAll(ranks);
        assertJoined(ranks);
        ranks.get(1).signal("STOP");
        for (String message : List.of("bytes 10000000", "a short one")) {
            assertThat(ranks.get(0).ask(message))
                    .startsWith("DeepEpTimeoutException")
                    .contains("waited more than 1.0 s for rank 1");
        }
        assertLeave(ranks.subList(0, 1));
    }

    /** Of the time that it had, it waited for almost nothing. */
    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void aRankThatWasStoppedForAWhileBlamesNobody() throws Exception {
        long callMillis = 4_000;
        int port = LoopbackPorts.free();
        List<RankProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            Map<String, String> patient = variables(rank, 3, port);
            patient.put("DEEPEP_FAILURE_SECONDS", "60");
            ranks.add(RankProcess.start(patient, PATIENT, rank == 2 ? callMillis : PATIENT));
        }
        started.addAll(ranks);
        assertJoined(ranks);
        ranks.get(2).tell("word2");
        Thread.sleep(500); // until it waits
        ranks.get(2).signal("STOP");
        Thread.sleep(callMillis + 1000);
        ranks.get(2).signal("CONT");
        Thread.sleep(500); // until it has looked at its clock
        ranks.get(0).tell("word0");
        ranks.get(1).tell("word1");
        for (RankProcess rank : ranks) {
            assertThat(rank.hear()).isEqualTo("word0,word1,word2");
        }
        assertLeave(ranks);
    }

    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void strangersDoNotJoin() throws Exception {
        int port = LoopbackPorts.free();
        RankProcess zero = start(variables(0, 2, port));
        Map<String, String> stranger = variables(1, 2, port);
        stranger.put("DEEPEP_SECRET", "another secret of 32 characters.");
        assertRefused(stranger, "RankMismatchException", "the same DEEPEP_SECRET");
        stranger.remove("DEEPEP_SECRET");
        assertRefused(stranger, "RankMismatchException", "the same DEEPEP_SECRET");
        assertRefused(
                variables(1, 3, port),
                "RankMismatchException",
                "rank 1 was started with size=3, rank 0 with size=2",
                "the same WORLD_SIZE");
        RankProcess one = start(variables(1, 2, port));
        assertJoined(List.of(zero, one));
        assertRefused(
                variables(1, 2, port), "RankMismatchException", "has joined this group before");
        assertExchange(List.of(zero, one));
        assertLeave(List.of(zero, one));
    }

    private void assertRefused(Map<String, String> variables, String... words) throws Exception {
        RankProcess refused = start(variables);
        assertThat(refused.hear()).contains(words);
        assertThat(refused.leave()).isEmpty();
        assertThat(refused.exitCode()).isEqualTo(1);
    }

    @Execution(ExecutionMode.CONCURRENT) // it waits
    @Test
    void aRankThatNeverComesIsNamed() throws Exception {
        int port = LoopbackPorts.free();
        RankProcess one = start(variables(1, 3, port));
        awaitCall(port); // or rank 0 could miss it too, where processes start slowly
        RankProcess zero = start(variables(0, 3, port), 10_000);
        for (RankProcess rank : List.of(zero, one)) {
            assertThat(rank.hear()).contains("for rank 2 in communicator start");
        }
    }

    /** Until a rank looks for rank 0 at this port, in vain: nobody answers. */
    private static void awaitCall(int port) throws IOException {
        try (ServerSocket noRank = new ServerSocket(port, 0, InetAddress.ofLiteral("127.0.0.1"))) {
            noRank.accept().close();
        }
    }

    /** Ranks of one user on one host need no secret from the launcher: they have one in a file. */
    @Test
    void withoutASecretOnLoopbackTheUsersOwnIsTaken() throws Exception {
        int port = LoopbackPorts.free();
        Map<String, String> zero = variables(0, 2, port);
        Map<String, String> one = variables(1, 2, port);
        zero.remove("DEEPEP_SECRET");
        one.remove("DEEPEP_SECRET");
        List<RankProcess> ranks = List.of(start(zero), start(one));
        assertJoined(ranks);
        assertExchange(ranks);
        assertLeave(ranks);
    }

    @Test
    void aSecretFileNeedsNoTemporaryFolder(@TempDir Path folder) throws Exception {
        Path file = SecretFileTest.write(folder.resolve("secret"), Groups.SECRET, "rw-------");
        Map<String, String> alone = variables(0, 1, LoopbackPorts.free());
        alone.remove("DEEPEP_SECRET");
        alone.put("DEEPEP_SECRET_FILE", file.toString());
        alone.put("JDK_JAVA_OPTIONS", "-Djava.io.tmpdir=/proc");
        RankProcess rank = start(alone);
        assertThat(rank.hear()).startsWith("NOTE: Picked up JDK_JAVA_OPTIONS");
        assertJoined(List.of(rank));
        assertLeave(List.of(rank));
    }

    @Test
    void withoutASecretOnlyOnLoopback() throws Exception {
        String address = ownAddress();
        Map<String, String> open = variables(0, 1, address, LoopbackPorts.free());
        open.remove("DEEPEP_SECRET");
        assertRefused(
                open,
                "IllegalArgumentException",
                "MASTER_ADDR="
                        + address
                        + " is not a loopback address and neither DEEPEP_SECRET_FILE nor");
    }

    /** As on Debian, where a host knows its own name by a loopback address. */
    @Test
    void theLoopbackAddressOfAHostsNameIsNotTakenWhereThereAreOthers(@TempDir Path folder)
            throws Exception {
        Path hosts = Files.writeString(folder.resolve("hosts"), "127.0.1.1 node0\n");
        Map<String, String> zero = variables(0, 2, "node0", LoopbackPorts.free());
        zero.put("LOCAL_WORLD_SIZE", "1");
        zero.put("JDK_JAVA_OPTIONS", "-Djdk.net.hosts.file=" + hosts);
        RankProcess unreachable = start(zero);
        assertThat(unreachable.hear()).startsWith("NOTE: Picked up JDK_JAVA_OPTIONS");
        assertThat(unreachable.hear())
                .startsWith("DeepEpUnavailableException")
                .contains("MASTER_ADDR=node0 is 127.0.1.1 on this host", "127.0.0.1 if");

        Files.writeString(hosts, ownAddress() + " node0\n", StandardOpenOption.APPEND);
        RankProcess reachable = start(zero);
        assertThat(reachable.hear()).startsWith("NOTE: Picked up JDK_JAVA_OPTIONS");
        Map<String, String> one = new HashMap<>(zero);
        one.putAll(Map.of("RANK", "1", "LOCAL_RANK", "0", "MASTER_ADDR", ownAddress()));
        one.remove("JDK_JAVA_OPTIONS");
        assertJoined(List.of(reachable, start(one)));
    }

    /** Hosts start at different times, and a name server may not know the first one yet. */
    @Test
    void waitsForTheNameOfRankZerosHost(@TempDir Path folder) throws Exception {
        Path hosts = Files.createFile(folder.resolve("hosts"));
        Map<String, String> one = ofTwoHosts(1, "node0", LoopbackPorts.free());
        useNames(one, hosts);
        RankProcess early = start(one);
        assertThat(early.hear()).startsWith("NOTE: Picked up JDK_JAVA_OPTIONS");
        Thread.sleep(4000); // until it looks for the name
        Files.writeString(hosts, ownAddress() + " node0\n");
        Map<String, String> zero = new HashMap<>(one);
        zero.putAll(Map.of("RANK", "0", "MASTER_ADDR", ownAddress()));
        zero.remove("JDK_JAVA_OPTIONS");
        assertJoined(List.of(start(zero), early));
    }

    /** As a pod of Kubernetes, whose own name the name server learns after it has started. */
    @Test
    void rankZeroWaitsForTheNameOfItsHost(@TempDir Path folder) throws Exception {
        Path hosts = Files.createFile(folder.resolve("hosts"));
        List<RankProcess> ranks = startBoth(hosts);
        Thread.sleep(4000); // until they look for the name
        Files.writeString(hosts, ownAddress() + " node0\n");
        assertJoined(ranks);
    }

    /** Of which rank 0 listens at one; 192.0.2.0/24 is of nobody. */
    @Test
    void findsRankZeroAtOneOfSeveralAddresses(@TempDir Path folder) throws Exception {
        String names = "192.0.2.99 node0\n" + ownAddress() + " node0\n";
        Path hosts = Files.writeString(folder.resolve("hosts"), names);
        List<RankProcess> ranks = startBoth(hosts);
        assertJoined(ranks);
    }

    /** A rank on each of two hosts, which look rank 0's up in this file, by {@code node0}. */
    private List<RankProcess> startBoth(Path hosts) throws IOException {
        int port = LoopbackPorts.free();
        List<RankProcess> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            Map<String, String> variables = ofTwoHosts(rank, "node0", port);
            useNames(variables, hosts);
            ranks.add(start(variables));
        }
        for (RankProcess rank : ranks) {
            assertThat(rank.hear()).startsWith("NOTE: Picked up JDK_JAVA_OPTIONS");
        }
        return ranks;
    }

    @Test
    void saysWhereRankZeroIsMissing() throws Exception {
        int port = LoopbackPorts.free();
        Map<String, String> one = ofTwoHosts(1, ownAddress(), port);
        assertThat(start(one, 2000).hear())
                .startsWith("DeepEpTimeoutException")
                .contains(
                        "for rank 0 in communicator start at "
                                + ownAddress()
                                + " port "
                                + port
                                + " (Connection refused)");
    }

    private static Map<String, String> ofTwoHosts(int rank, String address, int port) {
        Map<String, String> variables = variables(rank, 2, address, port);
        variables.putAll(Map.of("LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "1"));
        return variables;
    }

    private static void useNames(Map<String, String> variables, Path hosts) {
        variables.put(
                "JDK_JAVA_OPTIONS",
                "-Dsun.net.inetaddr.negative.ttl=0 -Djdk.net.hosts.file=" + hosts);
    }

    @Test
    void overTheNetwork() throws Exception {
        List<RankProcess> ranks = startAll(3, ownAddress(), LoopbackPorts.free());
        assertJoined(ranks);
        assertExchange(ranks);
        ranks.get(2).kill();
        ranks.get(0).awaitDeathOf(2);
        ranks.get(1).awaitDeathOf(2);
    }

    /** An address of this host that is not the loopback one. */
    private static String ownAddress() throws SocketException {
        Optional<String> address =
                NetworkInterface.networkInterfaces()
                        .filter(ProcessGroupTest::isUp)
                        .flatMap(NetworkInterface::inetAddresses)
                        .filter(each -> each instanceof Inet4Address && !each.isLoopbackAddress())
                        .map(InetAddress::getHostAddress)
                        .findFirst();
        assumeTrue(address.isPresent(), "this host has the loopback address alone");
        return address.orElseThrow();
    }

    private static boolean isUp(NetworkInterface each) {
        try {
            return each.isUp();
        } catch (SocketException gone) {
            return false;
        }
    }
}
