package io.deepep.cuda.topology;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A mapping given by the user, which goes before the one computed. Written as
 *
 * <pre>
 *   GPU=HCA[:PORT][+HCA[:PORT]...][,GPU=...]
 *
 *   gpu0=mlx5_0,gpu1=mlx5_0:2,0000:ab:00.0=mlx5_4+mlx5_5,*=mlx5_1
 * </pre>
 *
 * <p>A GPU is {@code gpuN}, numbered as by nvidia-smi, or its PCI address; {@code *} stands for all
 * that are not named. GPUs that are not covered are mapped automatically. Without a port, the
 * device's first usable one is meant.
 */
public record NicOverride(List<Rule> rules) {
    /** What stands before a GPU's number. */
    static final String GPU_PREFIX = "gpu";

    private static final String ALL_OTHERS = "*";
    private static final Pattern GPU = Pattern.compile("gpu\\d{1,3}|\\*");
    private static final Pattern PORT = Pattern.compile("([\\w.-]+)(?::(\\d{1,3}))?");

    /** NICs for a GPU, or for all others. */
    public record Rule(String gpu, List<Port> ports) {
        public Rule {
            ports = List.copyOf(ports);
        }

        boolean isForAllOthers() {
            return gpu.equals(ALL_OTHERS);
        }
    }

    /** An RDMA device, and one of its ports. */
    public record Port(String hca, OptionalInt port) {
        boolean names(String otherHca, int otherPort) {
            return hca.equals(otherHca) && (port.isEmpty() || port.getAsInt() == otherPort);
        }

        /** Whether a name, of a port or of a whole device, is about this port. */
        boolean isOf(String name) {
            int colon = name.indexOf(':');
            return colon < 0
                    ? name.equals(hca)
                    : names(name.substring(0, colon), Integer.parseInt(name.substring(colon + 1)));
        }

        @Override
        public String toString() {
            return port.isEmpty() ? hca : hca + ":" + port.getAsInt();
        }
    }

    public NicOverride {
        rules = List.copyOf(rules);
    }

    /** Everything is mapped automatically. */
    public static NicOverride none() {
        return new NicOverride(List.of());
    }

    /**
     * Reads a mapping. Whether the host has what it names is checked by {@link NicMapping#of}.
     *
     * @param text empty for none
     * @throws IllegalArgumentException naming the part that is wrong
     */
    public static NicOverride parse(String text) {
        List<Rule> rules = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        if (!text.isBlank()) {
            for (String part : text.split(",", -1)) {
                Rule rule = rule(text, part.strip());
                if (!seen.add(rule.gpu())) {
                    throw wrong(text, rule.gpu() + " is given twice; join its NICs by +");
                }
                rules.add(rule);
            }
        }
        return new NicOverride(rules);
    }

    private static Rule rule(String text, String part) {
        int equals = part.indexOf('=');
        if (equals < 0) {
            throw wrong(
                    text, "\"" + part + "\" has no =; write GPU=HCA[:PORT], as in gpu0=mlx5_0:1");
        }
        String gpu = part.substring(0, equals).strip();
        if (!GPU.matcher(gpu).matches()) {
            gpu =
                    PciAddress.find(gpu)
                            .map(PciAddress::toString)
                            .orElseThrow(() -> notGpu(text, part.substring(0, equals).strip()));
        }
        List<Port> ports = new ArrayList<>();
        for (String port : part.substring(equals + 1).split("\\+", -1)) {
            ports.add(port(text, port.strip()));
        }
        return new Rule(gpu, ports);
    }

    private static Port port(String text, String port) {
        Matcher matcher = PORT.matcher(port);
        if (!matcher.matches()) {
            throw wrong(text, "\"" + port + "\" is not HCA or HCA:PORT, as mlx5_0 or mlx5_0:1");
        }
        String number = matcher.group(2);
        return new Port(
                matcher.group(1),
                number == null ? OptionalInt.empty() : OptionalInt.of(Integer.parseInt(number)));
    }

    private static IllegalArgumentException notGpu(String text, String gpu) {
        return wrong(text, "\"" + gpu + "\" is not a GPU; write gpu0, 0000:1b:00.0 or *");
    }

    static IllegalArgumentException wrong(String text, String what) {
        return new IllegalArgumentException("NIC mapping \"" + text + "\": " + what);
    }

    /** As it was written, without blanks. */
    @Override
    public String toString() {
        return rules.stream()
                .map(
                        rule ->
                                rule.ports().stream()
                                        .map(Port::toString)
                                        .collect(Collectors.joining("+", rule.gpu() + "=", "")))
                .collect(Collectors.joining(","));
    }
}
