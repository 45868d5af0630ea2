package io.deepep.bench;

import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the names of networks as they are written on the command line: {@code peer-memory}. */
final class NetworkConverter implements ITypeConverter<NetworkOptions.Name> {
    @Override
    public NetworkOptions.Name convert(String text) {
        for (NetworkOptions.Name name : NetworkOptions.Name.values()) {
            if (name.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(text)) {
                return name;
            }
        }
        throw new TypeConversionException(
                "\"" + text + "\" is not one of auto, peer-memory, nvshmem");
    }
}
