"""Keeps the keyboard's focus where it was when a page replaces or disables what has it. Browsers then give it to no element, and the next
Tab begins at the top of the page.

If an element is removed, the focus goes to what has the same text or else is of the same kind in the nearest place around it that has a
control; if it is disabled, the focus comes back when it is enabled."""

SCRIPT = """<script>
(() => {
    let last = null, text = '', around = [];
    document.addEventListener('focusin', event => {
        last = event.target;
        text = last.textContent.trim();
        around = [];
        for (let place = last.parentElement; place && !place.matches('[role=main]'); place = place.parentElement) around.push(place);
    });
    const next = place => {
        const found = [...place.querySelectorAll('button:not([disabled]), a[href], input, textarea, [tabindex="0"]')].filter(one => one.offsetParent);
        return (text && found.find(one => one.textContent.trim() === text)) || found.find(one => one.tagName === last.tagName) || found[0];
    };
    const keep = changes => {
        if (!last || document.activeElement !== document.body) return;
        if (!last.isConnected) around.filter(place => place.isConnected).map(next).find(one => one)?.focus({preventScroll: true});
        else if (!last.disabled && changes.some(change => change.target === last && change.type === 'attributes')) last.focus({preventScroll: true});
    };
    new MutationObserver(keep).observe(document, {childList: true, subtree: true, attributeFilter: ['disabled']});
})();
</script>"""
