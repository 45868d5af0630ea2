package io.deepep.bench.plan;

import io.deepep.planner.Profile;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads constants as they are written on command lines: in small letters, with hyphens. */
abstract class Names<E extends Enum<E>> implements ITypeConverter<E> {
    private final Class<E> type;

    Names(Class<E> type) {
        this.type = type;
    }

    @Override
    public E convert(String name) {
        List<E> constants = Arrays.asList(type.getEnumConstants());
        return constants.stream()
                .filter(each -> text(each).equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new TypeConversionException(
                                        "'"
                                                + name
                                                + "' is not one of "
                                                + constants.stream().map(Names::text).toList()));
    }

    private static String text(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** {@code --mode}. */
    static final class Modes extends Names<PlanOptions.ModeChoice> {
        Modes() {
            super(PlanOptions.ModeChoice.class);
        }
    }

    /** {@code --low-latency-rows}. */
    static final class Rows extends Names<PlanOptions.LowLatencyRows> {
        Rows() {
            super(PlanOptions.LowLatencyRows.class);
        }
    }

    /** {@code --dtype}. */
    static final class RowTypes extends Names<PlanOptions.RowType> {
        RowTypes() {
            super(PlanOptions.RowType.class);
        }
    }

    /** {@code --profile}. */
    static final class Profiles extends Names<Profile> {
        Profiles() {
            super(Profile.class);
        }
    }
}
