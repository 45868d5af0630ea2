package io.deepep.bench;

import io.deepep.bench.RoutingOptions.Distribution;
import java.util.Arrays;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the name of a distribution as it is written on command lines. */
final class DistributionConverter implements ITypeConverter<Distribution> {
    @Override
    public Distribution convert(String name) {
        return Arrays.stream(Distribution.values())
                .filter(each -> each.toString().equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new TypeConversionException(
                                        "'"
                                                + name
                                                + "' is not one of "
                                                + Arrays.toString(Distribution.values())));
    }
}
