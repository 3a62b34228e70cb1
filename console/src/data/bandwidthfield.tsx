/** The field of the bandwidth of a network or of a server in it. */
import { useTexts } from "../texts/texts.tsx";
import { NumberField } from "../ui/field.tsx";

/** Mbit/s. Undefined: not filled in. */
export function BandwidthField({
  value,
  hint,
  error,
  onChange,
}: {
  value: number | undefined;
  hint?: string;
  error: string | undefined;
  onChange: (value: number | undefined) => void;
}) {
  const t = useTexts();
  return (
    <NumberField
      label={t.networks.bandwidth}
      unit="Mbit/s"
      min={1}
      hint={hint}
      error={error}
      value={value}
      onChange={onChange}
    />
  );
}
