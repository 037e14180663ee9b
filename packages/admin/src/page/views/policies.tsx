import { useState } from 'preact/hooks'
import { call, wordsOf } from '../api/client.ts'
import { usePolled } from '../api/poll.ts'
import type { Export, Policies as PoliciesAnswer, Session } from '../api/types.ts'
import { Button, Loaded, View } from '../parts/basics.tsx'
import { tell } from '../parts/toasts.tsx'
import { KillDialog, type Opened } from './policies/dialogs.tsx'
import { InForce, Overrides } from './policies/in-force.tsx'

export function Policies({ session }: { session: Session }) {
  const policies = usePolled<PoliciesAnswer>('policies')
  const [open, setOpen] = useState<Opened>()
  const mayChange = session.may.includes('policies') && session.features.changes
  const onOpen = (dialog: Opened) => setOpen(() => dialog)
  const { data, etag } = policies
  return (
    <View
      title="Policies"
      aside={
        <div class="row">
          {session.may.includes('policies') && (
            <Button onClick={() => void exportPolicies()}>Export</Button>
          )}
          {mayChange && data && (
            <Button
              look="deny"
              onClick={() => onOpen((props) => <KillDialog {...props} now={data} />)}
            >
              Kill switch
            </Button>
          )}
        </div>
      }
    >
      <Loaded polled={policies} what="The policies">
        {(data) => (
          <>
            <InForce policies={data} mayChange={mayChange} onOpen={onOpen} />
            <Overrides overrides={data.overrides} mayChange={mayChange} onOpen={onOpen} />
          </>
        )}
      </Loaded>
      {open?.({ ifMatch: etag, onClose: () => setOpen(undefined) })}
    </View>
  )
}

async function exportPolicies(): Promise<void> {
  try {
    const { version, text } = await call<Export>('policies/export')
    const link = document.createElement('a')
    const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
    link.href = url
    link.download = `sluice-${version}.yaml`
    link.click()
    URL.revokeObjectURL(url)
  } catch (error) {
    tell(wordsOf(error))
  }
}
