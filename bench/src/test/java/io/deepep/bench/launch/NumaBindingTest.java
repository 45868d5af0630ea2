package io.deepep.bench.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.bench.run.UsageException;
import io.deepep.cuda.topology.HostTopology;
import io.deepep.cuda.topology.PciDevice;
import io.deepep.testkit.sysfs.SysfsTree;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Ranks beside their GPUs, on made-up machines. */
class NumaBindingTest {
    @TempDir private Path root;

    private void nodes(String... processors) throws IOException {
        for (int node = 0; node < processors.length; node++) {
            Path folder = root.resolve("sys/devices/system/node/node" + node);
            Files.createDirectories(folder);
            Files.writeString(folder.resolve("cpulist"), processors[node] + "\n");
        }
        Path taskset = root.resolve("usr/bin/taskset");
        Files.createDirectories(taskset.getParent());
        Files.writeString(taskset, "");
        assertThat(taskset.toFile().setExecutable(true)).isTrue();
    }

    @Test
    void ranksRunBesideTheirGpus() throws IOException {
        SysfsTree.build("h20-8gpu-4bond.txt", root.resolve("sys"));
        nodes("0-47", "48-95");
        assertThat(NumaBinding.of(root, Map.of(), 8).processors())
                .containsExactly(
                        "0-47", "0-47", "0-47", "0-47", "48-95", "48-95", "48-95", "48-95");
        assertThat(NumaBinding.of(root, Map.of("CUDA_VISIBLE_DEVICES", "7,0"), 2).processors())
                .containsExactly("48-95", "0-47");
        assertThat(NumaBinding.of(root, Map.of("CUDA_VISIBLE_DEVICES", "7,8,0"), 2).processors())
                .as("CUDA sees no GPU from one on that there is not")
                .containsExactly("48-95", "48-95");
        assertThat(
                        NumaBinding.of(root, Map.of("CUDA_VISIBLE_DEVICES", "99999999999"), 1)
                                .processors())
                .containsExactly("0-47");
        assertThat(NumaBinding.of(root, Map.of(), 8).prefix(4))
                .containsExactly("/usr/bin/taskset", "-c", "48-95");
    }

    /** It has the last five of eight, and the driver does not name one of them. */
    @Test
    void gpusThatAContainerLacksHaveNoRanks() throws IOException {
        SysfsTree.build("h20-8gpu-4bond.txt", root.resolve("sys"));
        nodes("0-47", "48-95");
        List<PciDevice> gpus = HostTopology.read(root.resolve("sys")).gpus();
        for (int gpu = 0; gpu < gpus.size() - 1; gpu++) {
            Path facts =
                    root.resolve("proc/driver/nvidia/gpus/" + gpus.get(gpu).address())
                            .resolve("information");
            Files.createDirectories(facts.getParent());
            Files.writeString(
                    facts,
                    "Model: \t\t NVIDIA H20\nDevice Minor: \t " + gpu + "\nGPU Excluded:\t No\n");
        }
        Files.createDirectories(root.resolve("dev"));
        for (int gpu = 3; gpu < gpus.size(); gpu++) {
            Files.writeString(root.resolve("dev/nvidia" + gpu), "");
        }
        assertThat(NumaBinding.of(root, Map.of(), 5).processors())
                .containsExactly("0-47", "48-95", "48-95", "48-95", "0-47");
        assertThat(NumaBinding.of(root, Map.of("CUDA_VISIBLE_DEVICES", "1"), 1).processors())
                .containsExactly("48-95");
    }

    /** As in many virtual machines. */
    @Test
    void ranksWhoseGpusNodeIsNotKnownRunOnAllProcessors() throws IOException {
        SysfsTree tree = new SysfsTree(root.resolve("sys"));
        tree.file("devices/system/node/online", "0-1");
        tree.gpu("pci0000:16/0000:16:01.0/0000:17:00.0", -1);
        tree.gpu("pci0000:26/0000:26:01.0/0000:27:00.0", -1);
        tree.finish();
        nodes("0-47", "48-95");
        assertThat(NumaBinding.of(root, Map.of(), 2).processors()).containsExactly("", "");
        assertThat(NumaBinding.of(root, Map.of(), 2).prefix(1)).isEmpty();
    }

    /** As in a container or a job that has a part of the host. */
    @Test
    void ranksRunWhereTheProcessMay() throws IOException {
        SysfsTree.build("h20-8gpu-4bond.txt", root.resolve("sys"));
        nodes("0-47", "48-95");
        Path status = root.resolve("proc/self/status");
        Files.createDirectories(status.getParent());
        Files.writeString(status, "Threads:\t1\nCpus_allowed_list:\t40-41,44\n");
        assertThat(NumaBinding.of(root, Map.of("CUDA_VISIBLE_DEVICES", "0,7"), 2).processors())
                .containsExactly("40,41,44", "");
    }

    @Test
    void withoutGpusRanksAreDealtToTheNodes() throws IOException {
        nodes("0-3", "4-7");
        assertThat(NumaBinding.of(root, Map.of(), 3).processors())
                .containsExactly("0-3", "4-7", "0-3");
        assertThat(NumaBinding.none(2).prefix(1)).isEmpty();
    }

    /** Of a superchip, the memory of each GPU is a node; so is memory behind CXL. */
    @Test
    void nodesOfMemoryAloneGetNoRanks() throws IOException {
        nodes("0-71", "72-143", "", "");
        assertThat(NumaBinding.of(root, Map.of(), 4).processors())
                .containsExactly("0-71", "72-143", "0-71", "72-143");
    }

    @Test
    void saysWhatItNeeds() throws IOException {
        assertThatThrownBy(() -> NumaBinding.of(root, Map.of(), 1))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("usr/bin/taskset");
        nodes();
        assertThatThrownBy(() -> NumaBinding.of(root, Map.of(), 1))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("shows no NUMA nodes");
    }
}
