// If this failed, tests of the Java client would not be run, or one that fails or hangs would go
// unnoticed.
package io.leat;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Runs the tests: each method without parameters of these classes, in a directory of topics of its own.
 *
 * <pre>java -cp leat.jar:classes io.leat.Tests [NAME]</pre>
 */
public final class Tests {
  private static final List<Class<?>> ALL =
      List.of(
          TopicTests.class, RecordTests.class, GroupTests.class, MisuseTests.class,
          AfterCloseTests.class, WaitTests.class, ViewTests.class, LeakTests.class, ErrorTests.class);
  private static final long SECONDS = 120;

  private Tests() {}

  public static void main(String[] arguments) throws Exception {
    int failures = 0;
    int count = 0;
    for (Class<?> type : ALL) {
      Method[] methods = type.getDeclaredMethods();
      java.util.Arrays.sort(methods, Comparator.comparing(Method::getName));
      for (Method method : methods) {
        String name = type.getSimpleName() + "." + method.getName();
        if (method.isSynthetic() || method.getParameterCount() != 0) continue;
        if (java.lang.reflect.Modifier.isPrivate(method.getModifiers())) continue;
        if (arguments.length != 0 && !name.contains(arguments[0])) continue;
        ++count;
        if (!run(name, type, method)) ++failures;
      }
    }
    System.out.println(count + " tests, " + failures + " failed");
    System.exit(failures == 0 && count != 0 ? 0 : 1);
  }

  private static boolean run(String name, Class<?> type, Method method) throws Exception {
    long begin = System.nanoTime();
    for (String topic : Topic.list()) Topic.delete(topic, true);
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              method.invoke(type.getDeclaredConstructor().newInstance());
              return null;
            });
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    thread.start();
    try {
      task.get(SECONDS, TimeUnit.SECONDS);
      System.out.printf("ok %s (%d ms)%n", name, (System.nanoTime() - begin) / 1_000_000);
      return true;
    } catch (TimeoutException e) {
      System.out.println("FAILED " + name + ": not done after " + SECONDS + " s");
      for (StackTraceElement line : thread.getStackTrace()) System.out.println("  at " + line);
    } catch (ExecutionException e) {
      System.out.println("FAILED " + name);
      Throwable cause = e.getCause();
      if (cause instanceof InvocationTargetException) cause = cause.getCause();
      cause.printStackTrace(System.out);
    }
    return false;
  }

  // ---- What tests say -------------------------------------------------------------------------

  static void check(boolean isTrue) {
    if (!isTrue) throw new AssertionError();
  }

  static void equal(Object expected, Object actual) {
    if (!expected.equals(actual)) throw new AssertionError("wanted " + expected + ", got " + actual);
  }

  /** The exception that the call throws, which must be of this type. */
  static <E extends Throwable> E fails(Class<E> type, Callable<?> call) {
    try {
      call.call();
    } catch (Throwable e) {
      if (type.isInstance(e)) return type.cast(e);
      throw new AssertionError("not a " + type.getSimpleName(), e);
    }
    throw new AssertionError("no " + type.getSimpleName());
  }

  static void fails(ErrorCode code, Callable<?> call) {
    equal(code, fails(LeatException.class, call).code());
  }

  static void eventually(Callable<Boolean> isTrue) throws Exception {
    for (int i = 0; i < 1000; ++i) {
      if (isTrue.call()) return;
      Thread.sleep(10);
    }
    throw new AssertionError("not within 10 s");
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  static List<String> texts(List<? extends Entry> entries) {
    List<String> texts = new ArrayList<>();
    for (Entry entry : entries) texts.add(entry.isGap() ? entry.gapReason().text() : text(entry.value()));
    return texts;
  }

  static Subscriber fromBeginning(Topic topic) {
    return topic.subscriber(new SubscriberOptions().from(From.beginning()));
  }

  /** A line of /proc/self/status, for example VmRSS, in its unit. */
  static long status(String name) throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith(name + ":")) return Long.parseLong(line.replaceAll("[^0-9]", ""));
    }
    throw new AssertionError(name);
  }
}
