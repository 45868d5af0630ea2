package io.deepep.cuda.topology;

import java.util.Comparator;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where a device is on PCI, written {@code domain:bus:device.function} in hexadecimal. The kernel,
 * CUDA and NVML write it with different cases and widths of the domain; all of them are read.
 *
 * @param domain 32 bits, unsigned: more than 16 behind a volume management device
 */
public record PciAddress(int domain, int bus, int device, int function)
        implements Comparable<PciAddress> {
    private static final Pattern TEXT =
            Pattern.compile("(\\p{XDigit}{4,8}):(\\p{XDigit}{2}):([01]\\p{XDigit})\\.([0-7])");
    private static final int HEX = 16;
    private static final Comparator<PciAddress> ORDER =
            Comparator.<PciAddress>comparingLong(a -> Integer.toUnsignedLong(a.domain))
                    .thenComparingInt(PciAddress::bus)
                    .thenComparingInt(PciAddress::device)
                    .thenComparingInt(PciAddress::function);

    /**
     * Reads an address.
     *
     * @throws IllegalArgumentException if it is none
     */
    public static PciAddress parse(String text) {
        return find(text)
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "\"%s\" is not a PCI address such as 0000:1b:00.0"
                                                .formatted(text)));
    }

    /** The address, if the text is one. */
    public static Optional<PciAddress> find(String text) {
        Matcher matcher = TEXT.matcher(text);
        if (!matcher.matches()) {
            return Optional.empty();
        }
        return Optional.of(
                new PciAddress(
                        Integer.parseUnsignedInt(matcher.group(1), HEX),
                        Integer.parseInt(matcher.group(2), HEX),
                        Integer.parseInt(matcher.group(3), HEX),
                        Integer.parseInt(matcher.group(4), HEX)));
    }

    @Override
    public int compareTo(PciAddress other) {
        return ORDER.compare(this, other);
    }

    /** As the kernel writes it. */
    @Override
    public String toString() {
        return String.format("%04x:%02x:%02x.%x", domain, bus, device, function);
    }
}
