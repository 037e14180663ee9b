import { useState } from 'preact/hooks'
import { call, wordsOf } from '../api/client.ts'
import { usePolled } from '../api/poll.ts'
import type { Export, Policies as PoliciesAnswer, Session } from '../api/types.ts'
import { Loaded } from '../parts/basics.tsx'
import { tell } from '../parts/toasts.tsx'
import { HistoryPanel } from './policies/history.tsx'
import { Hidden, InForce } from './policies/in-force.tsx'
import { type Open, OpenDialog } from './policies/open-dialog.tsx'
import { Overrides } from './policies/overrides.tsx'
import { StateNotices } from './state-notices.tsx'

export function Policies({ session }: { session: Session }) {
  const policies = usePolled<PoliciesAnswer>('policies')
  const [open, setOpen] = useState<Open>()
  const mayChange = session.may.includes('policies') && session.features.changes
  const close = () => setOpen(undefined)
  const { data, etag } = policies
  return (
    <>
      <div class="head">
        <h1>Policies</h1>
        <div class="row">
          {session.may.includes('policies') && <ExportButton />}
          {mayChange && data && (
            <button type="button" class="button danger" onClick={() => setOpen({ what: 'kill' })}>
              Kill switch
            </button>
          )}
        </div>
      </div>
      <div class="stack">
        <StateNotices policies={data} />
        <Loaded polled={policies} what="The policies">
          {({ version, policies, overrides, entries }) => (
            <>
              <Hidden entries={entries} mayChange={mayChange} onOpen={setOpen} />
              <InForce
                version={version}
                policies={policies}
                entries={entries}
                mayChange={mayChange}
                onOpen={setOpen}
              />
              <Overrides overrides={overrides} mayChange={mayChange} onOpen={setOpen} />
            </>
          )}
        </Loaded>
        <HistoryPanel mayChange={mayChange} onOpen={setOpen} />
      </div>
      {open && <OpenDialog open={open} policies={data} ifMatch={etag} onClose={close} />}
    </>
  )
}

function ExportButton() {
  const run = async () => {
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
  return (
    <button type="button" class="button" onClick={() => void run()}>
      Export
    </button>
  )
}
