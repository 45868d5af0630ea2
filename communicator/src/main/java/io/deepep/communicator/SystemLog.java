package io.deepep.communicator;

import java.lang.System.Logger.Level;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Locale;
import org.jgroups.logging.CustomLogFactory;
import org.jgroups.logging.Log;
import org.jgroups.logging.LogFactory;

/**
 * JGroups' log lines as lines of {@link System.Logger}, which the application configures. What
 * JGroups warns of is thrown or shows in the membership too, so its warnings and errors are logged
 * at {@code DEBUG} and everything else at {@code TRACE}.
 */
final class SystemLog implements InvocationHandler {
    private static final Level IMPORTANT = Level.DEBUG;
    private static final Level DETAIL = Level.TRACE;

    private final System.Logger logger;

    private SystemLog(String name) {
        logger = System.getLogger(name);
    }

    /** From now on, unless the application has given JGroups a log factory itself. */
    static void takeOver() {
        if (LogFactory.getCustomLogFactory() == null) {
            LogFactory.setCustomLogFactory(
                    new CustomLogFactory() {
                        @Override
                        public Log getLog(Class<?> type) {
                            return of(type.getName());
                        }

                        @Override
                        public Log getLog(String category) {
                            return of(category);
                        }
                    });
        }
    }

    static Log of(String name) {
        return (Log)
                Proxy.newProxyInstance(
                        Log.class.getClassLoader(),
                        new Class<?>[] {Log.class},
                        new SystemLog(name));
    }

    /** Takes a call of any method of {@link Log}: all that matters is in their names. */
    @Override
    public Object invoke(Object log, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "isFatalEnabled", "isErrorEnabled", "isWarnEnabled" -> {
                return logger.isLoggable(IMPORTANT);
            }
            case "isInfoEnabled", "isDebugEnabled", "isTraceEnabled" -> {
                return logger.isLoggable(DETAIL);
            }
            case "fatal", "error", "warn" -> log(IMPORTANT, arguments);
            case "info", "debug", "trace" -> log(DETAIL, arguments);
            case "getLevel" -> {
                return logger.isLoggable(DETAIL)
                        ? "trace"
                        : logger.isLoggable(IMPORTANT) ? "debug" : "off";
            }
            case "setLevel" -> {} // the application sets levels
            default -> {
                return method.isDefault()
                        ? InvocationHandler.invokeDefault(log, method, arguments)
                        : method.invoke(this, arguments); // of Object
            }
        }
        return null;
    }

    /** A message, alone or with an exception, or a format and its values. */
    private void log(Level level, Object[] arguments) {
        switch (arguments.length == 1 ? null : arguments[1]) {
            case null -> logger.log(level, arguments[0]);
            case Throwable thrown -> logger.log(level, (String) arguments[0], thrown);
            default ->
                    logger.log(
                            level,
                            () ->
                                    String.format(
                                            Locale.ROOT,
                                            (String) arguments[0],
                                            (Object[]) arguments[1]));
        }
    }
}
