import { Select } from '../../parts/forms.tsx'

interface PolicySelectProps {
  readonly names: readonly string[]
  readonly value: string
  readonly onValue: (name: string) => void
}

/** One of the policies, by its name. */
export function PolicySelect({ names, value, onValue }: PolicySelectProps) {
  const options = names.map((name) => [name, name] as const)
  return <Select label="Policy" value={value} options={options} onValue={onValue} />
}
