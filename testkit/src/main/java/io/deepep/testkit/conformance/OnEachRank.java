package io.deepep.testkit.conformance;

import io.deepep.EpTopology;
import io.deepep.testkit.TestBackend;
import java.lang.reflect.Method;
import java.util.List;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Runs a case whose last parameter is a {@link RankContext} once on every rank of its group, each
 * on its thread, with an open buffer. Group and buffer are those of the {@link RankGroup} among the
 * arguments, else of the suite.
 */
final class OnEachRank implements ParameterResolver, InvocationInterceptor {
    private final TestBackend backend;

    OnEachRank(TestBackend backend) {
        this.backend = backend;
    }

    /** {@link GroupArguments} has contexts of its own. */
    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == RankContext.class
                && AnnotationSupport.findAnnotation(parameter.getDeclaringExecutable(), Cases.class)
                        .filter(cases -> cases.value().length > 0)
                        .isEmpty();
    }

    /** Stands for the contexts of the ranks, which exist when the case runs. */
    @Override
    public RankContext resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return RankContext.of(backend, null);
    }

    @Override
    public void interceptTestMethod(
            Invocation<Void> invocation,
            ReflectiveInvocationContext<Method> call,
            ExtensionContext context)
            throws Throwable {
        intercept(invocation, call);
    }

    @Override
    public void interceptTestTemplateMethod(
            Invocation<Void> invocation,
            ReflectiveInvocationContext<Method> call,
            ExtensionContext context)
            throws Throwable {
        intercept(invocation, call);
    }

    private void intercept(Invocation<Void> invocation, ReflectiveInvocationContext<Method> call)
            throws Throwable {
        List<Object> arguments = call.getArguments();
        if (arguments.isEmpty() || !(arguments.getLast() instanceof RankContext placeholder)) {
            invocation.proceed();
            return;
        }
        invocation.skip();
        RankGroup group = groupOf(call);
        EpTopology given = placeholder.topology();
        Ranks.run(
                backend,
                given == null ? group.topology(backend) : given,
                group::limit,
                context -> invoke(call, context));
    }

    private static RankGroup groupOf(ReflectiveInvocationContext<Method> call) {
        for (Object argument : call.getArguments()) {
            if (argument instanceof RankGroup group) {
                return group;
            }
        }
        return (RankGroup) call.getTarget().orElseThrow();
    }

    private static void invoke(ReflectiveInvocationContext<Method> call, RankContext context) {
        Object[] arguments = call.getArguments().toArray();
        arguments[arguments.length - 1] = context;
        ReflectionSupport.invokeMethod(
                call.getExecutable(), call.getTarget().orElseThrow(), arguments);
    }
}
