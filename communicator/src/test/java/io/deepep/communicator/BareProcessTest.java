package io.deepep.communicator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.deepep.spi.LoopbackPorts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jgroups.Global;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A rank whose process lacks what a communicator needs. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BareProcessTest {
    private static final List<String> WITHOUT_NETWORK = List.of("unshare", "-rn");

    private final Map<String, String> variables =
            Groups.variables(0, 1, "127.0.0.1", LoopbackPorts.free());

    private List<String> linesOf(List<String> under) throws IOException, InterruptedException {
        try (RankProcess rank = RankProcess.start(under, variables, 60_000, 60_000)) {
            return rank.leave();
        }
    }

    @Test
    void noNetworkInterfaces() throws IOException, InterruptedException {
        assumeTrue(canLeaveTheNetwork(), "unshare -rn does not work here");
        assertThat(linesOf(WITHOUT_NETWORK))
                .singleElement()
                .asString()
                .startsWith("DeepEpUnavailableException: rank 0 finds no network interface")
                .contains("ip link set lo up");
    }

    private static boolean canLeaveTheNetwork() throws InterruptedException {
        try {
            return new ProcessBuilder("unshare", "-rn", "true").start().waitFor() == 0;
        } catch (IOException noSuchCommand) {
            return false;
        }
    }

    /** As in a Java runtime that jlink made for the rest of the library. */
    @Test
    void noModulesForJGroups() throws IOException, InterruptedException {
        variables.put("JDK_JAVA_OPTIONS", "--limit-modules=java.base,jdk.jfr");
        assertThat(linesOf(List.of())).contains("joined 0 of 1");
    }

    /** As in a shaded jar that leaves out what it sees no use of, or that relocates it. */
    @Test
    void noClassThatJGroupsLoadsByName(@TempDir Path folder)
            throws IOException, InterruptedException {
        Path names =
                Files.writeString(
                        folder.resolve("names.xml"),
                        """
                        <magic-number-class-mapping>
                            <class id="1" name="org.jgroups.Gone"/>
                        </magic-number-class-mapping>
                        """);
        variables.put("JDK_JAVA_OPTIONS", "-D" + Global.MAGIC_NUMBER_FILE + "=" + names);
        assertThat(linesOf(List.of()).getLast())
                .startsWith("DeepEpUnavailableException: JGroups, which ranks as processes need, ")
                .contains(": org.jgroups.Gone; keep all of org.jgroups:jgroups ");
    }

    /** SLF4J would print a warning if it had no logger, for example. */
    @Test
    void noLoggerThatJGroupsChooses(@TempDir Path folder) throws IOException, InterruptedException {
        Path loaded = folder.resolve("classes");
        variables.put("JDK_JAVA_OPTIONS", "-Xlog:class+load:file=" + loaded);
        assertThat(linesOf(List.of())).contains("joined 0 of 1");
        assertThat(Files.readAllLines(loaded))
                .filteredOn(line -> line.contains(" org.jgroups.logging."))
                .anyMatch(line -> line.contains(".LogFactory "))
                .noneMatch(line -> line.contains("LogImpl "));
    }
}
