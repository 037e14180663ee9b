import theme from 'vitepress/theme'
import { defineComponent, h, onBeforeUnmount, onMounted, ref } from 'vue'
import '../playground/playground.css'
import './site.css'

/** The playground, loaded once the page is there: it runs in the browser alone. */
const Playground = defineComponent({
  props: { hero: Boolean },
  setup({ hero }) {
    const box = ref<Element>()
    let unmount: (() => void) | undefined
    onMounted(async () => {
      const { mount } = await import('../playground/playground.tsx')
      if (box.value) unmount = mount(box.value, hero)
    })
    onBeforeUnmount(() => unmount?.())
    return () => h('div', { ref: box, class: hero ? 'playground-hero' : 'playground-page' })
  },
})

/** A reader chooses a framework once: all groups that have the tab show it, and the page stands still. */
function chooseTab({ target }: Event): void {
  if (!(target instanceof HTMLInputElement && target.matches('.vp-code-group input'))) return
  const chosen = target.labels?.[0]
  if (!chosen) return
  const { top } = chosen.getBoundingClientRect()
  for (const group of document.querySelectorAll('.vp-code-group')) {
    const titles = [...group.querySelectorAll('label')].map(({ textContent }) => textContent)
    const index = titles.indexOf(chosen.textContent)
    const input = group.querySelectorAll('input')[index]
    if (!input) continue
    input.checked = true
    for (const [place, block] of [...group.querySelectorAll('.blocks > *')].entries()) {
      block.classList.toggle('active', place === index)
    }
  }
  scrollBy({ top: chosen.getBoundingClientRect().top - top, behavior: 'instant' })
}

export default {
  extends: theme,
  Layout: () =>
    h(theme.Layout, null, { 'home-features-before': () => h(Playground, { hero: true }) }),
  enhanceApp: ({ app }: { app: { component: (name: string, component: object) => unknown } }) => {
    app.component('Playground', Playground)
    if (typeof window !== 'undefined') window.addEventListener('change', chooseTab)
  },
}
