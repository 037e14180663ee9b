import type { ComponentChildren, TargetedInputEvent } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from './basics.tsx'
import { Icon } from './icons.tsx'

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly fault?: string | undefined
  readonly hint?: string | undefined
  readonly type?: 'text' | 'datetime-local'
  readonly placeholder?: string
  readonly focus?: boolean
}

/** A text field with its label, and its error or a hint. */
export function Field(props: FieldProps) {
  const { label, value, onValue, fault, hint, type = 'text', placeholder, focus } = props
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (focus) input.current?.focus()
  }, [])
  const note = fault ?? hint
  const attributes = {
    ref: input,
    id,
    class: 'input',
    value,
    placeholder,
    autocomplete: 'off',
    spellcheck: false,
    'aria-invalid': fault !== undefined,
    'aria-describedby': note === undefined ? undefined : `${id}-note`,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement>) =>
      onValue(currentTarget.value),
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'text' ? (
        <input type="text" {...attributes} />
      ) : (
        <input type={type} {...attributes} />
      )}
      {note !== undefined && (
        <p id={`${id}-note`} class={fault === undefined ? 'none' : 'deny'}>
          {note}
        </p>
      )}
    </div>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly value: T
  readonly options: readonly (readonly [value: T, label: string])[]
  readonly onValue: (value: T) => void
}

/** A choice among a few visible values. */
export function Choice<T extends string>(props: ChoiceProps<T>) {
  const { label, value, options, onValue } = props
  const name = useId()
  return (
    <div class="field" role="radiogroup" aria-label={label}>
      <span class="label">{label}</span>
      <div>
        <div class="choice">
          {options.map(([option, text]) => (
            <label key={option}>
              <input
                type="radio"
                name={name}
                checked={option === value}
                onChange={() => onValue(option)}
              />
              {text}
            </label>
          ))}
        </div>
      </div>
    </div>
  )
}

interface SelectProps {
  readonly label: string
  readonly value: string
  /** A value that serves as its label needs no second one. */
  readonly options: readonly (string | readonly [value: string, label: string])[]
  readonly onValue: (value: string) => void
}

export function Select({ label, value, options, onValue }: SelectProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        class="input"
        value={value}
        onChange={({ currentTarget }) => onValue(currentTarget.value)}
      >
        {options.map((each) => {
          const [option, text] = typeof each === 'string' ? [each, each] : each
          return (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          )
        })}
      </select>
    </div>
  )
}

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly onSubmit: () => void
  readonly footer: ComponentChildren
  readonly children: ComponentChildren
}

/** A native dialog: it traps the focus, Escape closes it, and the focus returns. */
export function Dialog(props: DialogProps) {
  const { title, onClose, onSubmit, footer, children } = props
  const dialog = useRef<HTMLDialogElement>(null)
  // Before a field of the dialog takes the focus, so that the focus returns to where it was.
  useLayoutEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    dialog.current?.querySelector<HTMLElement>('.body :is(input, select)')?.focus()
    return () => {
      // A row may have left its table meanwhile.
      const opener = before?.isConnected ? before : document.querySelector('main')
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit()
        }}
      >
        <header>
          <h2 class="grow">{title}</h2>
          <Button look="plain" little label="Close" onClick={onClose}>
            <Icon name="close" />
          </Button>
        </header>
        <div class="body">{children}</div>
        <footer>{footer}</footer>
      </form>
    </dialog>
  )
}
