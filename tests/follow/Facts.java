import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Prints what a release of Kafka tells of itself: feature levels, error codes, and the configs of the classes that are
 * named as KIND=CLASS. Fields of a line are separated by tabs, the last one is the value. Run from its source on the
 * class path of each release, so only names that all of them have stand here.
 */
public final class Facts {
    public static void main(String[] args) throws ReflectiveOperationException {
        MetadataVersion newest = MetadataVersion.latestProduction();
        say("feature", MetadataVersion.FEATURE_NAME, "finalized up to " + newest.featureLevel());
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            say("feature", MetadataVersion.FEATURE_NAME, String.valueOf(version.featureLevel()), version.version());
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            String name = feature.featureName();
            say("feature", name, "up to " + feature.latestProduction() + ", by default " + feature.defaultLevel(newest));
            for (FeatureVersion version : feature.featureVersions()) {
                if (version.featureLevel() > 0) {
                    String needs = new TreeMap<>(version.dependencies()).toString();
                    String from = version.bootstrapMetadataVersion().version();
                    say("feature", name, String.valueOf(version.featureLevel()), "by default from " + from + ", needs " + needs);
                }
            }
        }
        for (Errors error : Errors.values()) {
            say("error", Short.toString(error.code()), error.name());
        }
        for (String arg : args) {
            String[] kindAndClass = arg.split("=");
            configs(kindAndClass[0], Class.forName(kindAndClass[1]));
        }
    }

    private static void configs(String kind, Class<?> type) throws ReflectiveOperationException {
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && ConfigDef.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                for (ConfigDef.ConfigKey key : ((ConfigDef) field.get(null)).configKeys().values()) {
                    String otherwise = key.hasDefault() ? "default " + quoted(key.defaultValue) : "no default";
                    say("config", kind, key.name, key.type + ", " + otherwise);
                }
            }
        }
    }

    private static String quoted(Object value) {
        return value instanceof String ? '"' + (String) value + '"' : String.valueOf(value);
    }

    private static void say(String... fields) {
        System.out.println(String.join("\t", fields).replace("\n", " "));
    }
}
